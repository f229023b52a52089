// The WebSocket of one visitor: a request at a time, its answer as a promise. After a break it connects again and goes back to
// the same walk, as long as the server knows it. The answers are described in docs/serve.md.

export class Connection {
  #socket = null;
  #waiting = [];  // requests without an answer; the first one was sent
  #refusal = '';  // why there is no walk

  // on.joined(about): after every join; on.lost(why): there is no connection, or no walk, and it will be tried again.
  constructor(on) {
    this.on = on;
    this.#connect();
  }

  // The answer to a request; its error, if the server refuses it or is not there.
  ask(request) {
    if (this.#socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error('The server is not there. Trying again.'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({request, resolve, reject, sent: 0});
      if (this.#waiting.length === 1) this.#send();
    });
  }

  #connect() {
    this.#socket = new WebSocket(`ws://${location.host}/walk`);
    this.#socket.binaryType = 'arraybuffer';
    this.#socket.onopen = () => this.join();
    this.#socket.onmessage = event => this.#answer(event.data);
    this.#socket.onclose = () => {
      const left = this.#waiting.splice(0);
      for (const {reject} of left) reject(new Error('The server is gone. Trying again.'));
      this.on.lost(this.#refusal || 'The server is gone, or has no place left. Trying again.');
      setTimeout(() => this.#connect(), this.#refusal ? 5000 : 1000);
      this.#refusal = '';
    };
  }

  // A reload of the page goes on with its walk; another tab is another visitor. Whether there is a walk now.
  async join() {
    const known = sessionStorage.getItem('visitor');
    try {
      let about = known ? await this.ask({do: 'join', visitor: known}).catch(() => null) : null;
      about ??= await this.ask({do: 'join'});
      sessionStorage.setItem('visitor', about.visitor);
      this.on.joined(about);
      return true;
    } catch (error) {
      this.#refusal = `${error.message} Trying again.`;
      this.#socket.close();
      return false;
    }
  }

  #send() {
    if (!this.#waiting.length) return;
    this.#waiting[0].sent = performance.now();
    this.#socket.send(JSON.stringify(this.#waiting[0].request));
  }

  #answer(data) {
    const {resolve, reject, sent} = this.#waiting.shift();
    this.#send();
    if (data instanceof ArrayBuffer) return resolve({...readView(data), roundTrip: performance.now() - sent});
    const words = JSON.parse(data);
    if (words.error) reject(Object.assign(new Error(words.error), {kind: words.kind}));
    else resolve(words);
  }
}

// The length of a JSON text, the text, then for each branch the pixels of the model's frame and of the true one.
function readView(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const view = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const bytes = 4 * view.width * view.height;
  let at = 4 + size;
  const nextImage = () => {
    const pixels = new Uint8ClampedArray(buffer, at, bytes);
    at += bytes;
    return new ImageData(pixels, view.width, view.height);
  };
  for (const branch of view.branches) {
    branch.seen = nextImage();
    if (view.truth) branch.trueImage = nextImage();
  }
  return view;
}
