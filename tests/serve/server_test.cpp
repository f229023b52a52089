// The server over real sockets: visitors side by side, and every kind of client that it must live through.
#include "convssm/serve/server.h"

#include <ifaddrs.h>

#include <chrono>
#include <fstream>

#include "convssm/io/gif.h"
#include "convssm/io/source.h"
#include "tests/serve/client.h"
#include "tests/serve/running_host.h"

namespace convssm::serve {
namespace {

using nlohmann::json;
using testing::expect_error;
using testing::expect_same_state;
using testing::http;
using testing::LibraryWalk;
using testing::Message;
using testing::RunningHost;
using testing::some_action;
using testing::some_actions;
using testing::WebSocket;

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text.substr(0, 600);
}

// A visitor who has joined.
struct Visitor {
  explicit Visitor(int port) : socket(port), about(socket.ask_json({{"do", "join"}})) {}
  std::string name() const { return about.value("visitor", ""); }
  json step(int64_t action) { return socket.ask_json({{"do", "step"}, {"action", action}}); }

  WebSocket socket;
  json about;
};

TEST(Server, EachVisitorHasAStateOfItsOwn) {
  RunningHost running;
  Visitor one(running.port()), two(running.port());
  EXPECT_NE(one.name(), two.name());
  EXPECT_EQ(one.about["world"], "maze");
  EXPECT_EQ(one.about["actions"], 6);
  EXPECT_EQ(one.about["action_names"][1], "forward");
  two.socket.ask_json({{"do", "start"}, {"world", 2}, {"seed", 5}});
  for (int64_t k = 0; k < 12; ++k) {  // in turns
    EXPECT_EQ(one.step(some_action(k))["branches"][0]["frame"], k + 1);
    two.step(some_action(k + 3));
  }
  LibraryWalk first(running.model(), 0, 1), second(running.model(), 2, 5);
  first.walk(some_actions(0, 12));
  second.walk(some_actions(3, 15));
  expect_same_state(running.state(one.name(), 0), first.state());
  expect_same_state(running.state(two.name(), 0), second.state());
}

TEST(Server, SendsThePixelsOfEveryBranch) {
  RunningHost running;
  Visitor visitor(running.port());
  visitor.socket.ask_json({{"do", "branch"}, {"count", 3}});
  const Message message = visitor.socket.ask(R"({"do": "step", "action": 1, "all": true})");
  ASSERT_EQ(message.opcode, 2);
  const size_t text = static_cast<uint8_t>(message.bytes[0]) + 256u * static_cast<uint8_t>(message.bytes[1]);
  const size_t image = 4 * testing::kSceneSide * testing::kSceneSide;
  EXPECT_EQ(message.bytes.size(), 4 + text + 3 * 2 * image);
  const auto seen =
      running.host().ask([&](const Visitors& all) { return all.visit(visitor.name()).now(2).truth.pixels; });
  const size_t last = 4 + text + 5 * image;
  for (size_t i = 0; i < seen.size() / 3; ++i) {
    ASSERT_EQ(static_cast<uint8_t>(message.bytes[last + 4 * i + 1]), seen[3 * i + 1]) << i;
    ASSERT_EQ(static_cast<uint8_t>(message.bytes[last + 4 * i + 3]), 255) << i;
  }
}

TEST(Server, AWalkGoesOnAfterTheConnectionBroke) {
  RunningHost running;
  std::string name;
  {
    Visitor visitor(running.port());
    visitor.step(1);
    name = visitor.name();
  }
  WebSocket again(running.port());
  EXPECT_EQ(again.ask_json({{"do", "join"}, {"visitor", name}})["visitor"], name);
  EXPECT_EQ(again.ask_json({{"do", "look"}})["branches"][0]["frame"], 1);
  EXPECT_EQ(running.visitors(), 1);
  EXPECT_NE(again.ask_json({{"do", "join"}})["visitor"], name);
  EXPECT_EQ(running.visitors(), 1) << "a connection has one walk";
}

TEST(Server, RequestsThatComeTogetherAreAnsweredInTurn) {
  RunningHost running;
  Visitor visitor(running.port());
  std::string all;
  for (int i = 0; i < 20; ++i) all += WebSocket::frame(1, R"({"do": "step", "action": 1})");
  ASSERT_TRUE(visitor.socket.socket().write(all));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(visitor.socket.receive().opcode, 2) << i;
  EXPECT_EQ(visitor.socket.ask_json({{"do", "look"}})["branches"][0]["frame"], 20);
}

TEST(Server, AnswersWrongRequestsAndGoesOn) {
  RunningHost running;
  WebSocket socket(running.port());
  const auto told = [&](const std::string& text) { return json::parse(socket.ask(text).bytes).value("error", ""); };
  expect_part(told("{\"do\": "), "the request");
  expect_part(told("\xff\xfe\x00"), "the request");
  expect_part(told(R"({"do": "step", "action": 1})"), "join");
  expect_part(told(R"({"do": "join", "visitor": "0123456789abcdef0123456789abcdef"})"), "unknown visitor");
  expect_part(told(R"({"do": "join", "visitor": "../../etc/passwd"})"), "unknown visitor");
  EXPECT_EQ(socket.ask_json({{"do", "join"}})["world"], "maze");
  expect_part(told(R"({"do": "step", "action": 77})"), "0 to 5");
  expect_part(told(R"({"do": "temperature", "value": 0.5})"), "no temperature");
  EXPECT_EQ(socket.ask_json({{"do", "step"}, {"action", 1}})["branches"][0]["frame"], 1);
}

TEST(Server, DropsMessagesThatAreTooLongOrNoTexts) {
  RunningHost running;
  const auto closed_with = [&](const std::string& bytes) {
    WebSocket socket(running.port());
    socket.socket().write(bytes);
    const Message message = socket.receive();
    if (message.opcode != 8 || message.bytes.size() < 2) return -1;
    return 256 * static_cast<uint8_t>(message.bytes[0]) + static_cast<uint8_t>(message.bytes[1]);
  };
  EXPECT_EQ(closed_with(WebSocket::frame(1, std::string(5000, ' '))), 1009);
  EXPECT_EQ(closed_with(WebSocket::frame(2, "abc")), 1003);
  std::string pieces = WebSocket::frame(1, std::string(3000, ' '), false);  // a message in frames
  EXPECT_EQ(closed_with(pieces + WebSocket::frame(0, std::string(3000, ' '))), 1009);
  const std::string huge("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14);  // says that it will be endless
  WebSocket socket(running.port());
  socket.socket().write(huge + std::string(10000, ' '));
  EXPECT_EQ(socket.receive().opcode, 8);
  Visitor good(running.port());
  EXPECT_EQ(good.step(1)["branches"][0]["frame"], 1);
}

TEST(Server, AMessageInFramesIsOneMessage) {
  RunningHost running;
  WebSocket socket(running.port());
  socket.socket().write(WebSocket::frame(1, R"({"do": )", false) + WebSocket::frame(0, R"("join"})"));
  EXPECT_EQ(json::parse(socket.receive().bytes)["world"], "maze");
}

TEST(Server, ServesItsPageAndNoFileOfTheMachine) {
  RunningHost running;
  const std::string page = http(running.port(), "/");
  expect_part(page, "HTTP/1.1 200");
  expect_part(page, "content-security-policy: default-src 'none'");
  expect_part(page, "page.js");
  expect_part(http(running.port(), "/page.js"), "text/javascript");
  expect_part(http(running.port(), "/connection.js"), "WebSocket");
  expect_part(http(running.port(), "/page.css"), "text/css");
  for (const char* path :
       {"/etc/passwd", "/../../../../etc/passwd", "/..%2f..%2f..%2fetc/passwd", "//etc/passwd", "/page.js/../x",
        "/recording/../../etc/passwd.gif", "/recording/.gif", "/recording/0123456789abcdef0123456789abcdef.gif"}) {
    const std::string answer = http(running.port(), path);
    expect_part(answer, "HTTP/1.1 404");
    EXPECT_EQ(answer.find("root:"), std::string::npos) << path;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD"}) expect_part(http(running.port(), "/", method), " 405 ");
  expect_part(http(running.port(), "/walk"), " 426 ");
}

TEST(Server, LivesThroughWhatIsNoHttp) {
  RunningHost running;
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00"), std::string("GET\r\n\r\n"), std::string(100000, 'x'),
        std::string("CONNECT a:1 HTTP/1.1\r\n\r\nabc"),
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100000, 'x'),
        std::string("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")}) {
    const testing::Socket socket(running.port());
    socket.write(bytes);
    socket.read(1000, 100);
  }
  expect_part(http(running.port(), "/"), "HTTP/1.1 200");
}

TEST(Server, PagesOfOthersCannotAsk) {
  RunningHost running;
  expect_part(http(running.port(), "/", "GET", "Host: evil.example\r\n"), " 403 ");
  expect_part(http(running.port(), "/", "GET", "Origin: http://evil.example\r\n"), " 403 ");
  expect_part(WebSocket(running.port(), "Host: evil.example\r\n").head(), " 403 ");
  expect_part(WebSocket(running.port(), "Origin: http://evil.example\r\n").head(), " 403 ");
  expect_part(WebSocket(running.port(), "Origin: null\r\n").head(), " 403 ");
  EXPECT_TRUE(WebSocket(running.port(), "Origin: http://localhost\r\n").open());
  EXPECT_EQ(running.visitors(), 0);
}

TEST(Server, IsReachedByLoopbackAlone) {
  RunningHost running;
  EXPECT_EQ(running.host().address(), fmt::format("http://127.0.0.1:{}/", running.port()));
  ifaddrs* all = nullptr;
  ASSERT_EQ(getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in to = *reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (ntohl(to.sin_addr.s_addr) >> 24 == 127) continue;
    to.sin_port = htons(static_cast<uint16_t>(running.port()));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_NE(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << one->ifa_name;
    close(fd);
  }
  freeifaddrs(all);
  std::ifstream table("/proc/net/tcp");  // also where there is no other interface to try
  const std::string listening(std::istreambuf_iterator<char>(table), {});
  expect_part(listening, fmt::format(" 0100007F:{:04X} 00000000:0000 0A", running.port()));
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("127.9.9.9") && is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("192.168.0.1") || is_loopback("::"));
}

TEST(Server, SaysWhyItCannotListen) {
  RunningHost running;
  const auto listen = [](const ServerOptions& options) { return [options] { const Server server(options, {}); }; };
  expect_error(listen({.port = running.port()}), {"cannot listen", std::to_string(running.port()), "--port 0"});
  expect_error(listen({.port = 70000}), {"0 to 65535", "70000"});
  expect_error(listen({.bind = "localhost"}), {"in numbers", "localhost"});
  expect_error(listen({.bind = "192.0.2.1", .port = 0}), {"cannot listen", "192.0.2.1"});
}

TEST(Server, SaysWhenAllPlacesAreTaken) {
  RunningHost running(false, {.limits = {.visitors = 2}});
  Visitor one(running.port()), two(running.port());
  WebSocket third(running.port());
  expect_part(third.ask_json({{"do", "join"}}).value("error", ""), "all 2 places are taken");
  std::vector<WebSocket> more;
  for (int i = 0; i < 20; ++i) more.emplace_back(running.port());
  expect_part(more.back().head(), " 503 ");
  EXPECT_EQ(two.step(1)["branches"][0]["frame"], 1);
}

TEST(Server, ForgetsThoseWhoAreSilent) {
  RunningHost running(false, {.limits = {.idle = std::chrono::seconds(1)}});
  Visitor silent(running.port()), other(running.port());
  for (int i = 0; i < 30 && running.visitors() == 2; ++i) {
    other.step(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(running.visitors(), 1);
  expect_part(silent.step(1).value("error", ""), "unknown visitor");
  EXPECT_EQ(silent.socket.ask_json({{"do", "join"}})["world"], "maze");
}

TEST(Server, AThousandConnectionsDoNotStopAVisitor) {
  RunningHost running(false, {.server = {.patience = 1}});
  Visitor visitor(running.port());
  std::vector<testing::Socket> crowd;
  for (int i = 0; i < 1000; ++i) {
    crowd.emplace_back(running.port());
    ASSERT_TRUE(crowd.back().connected()) << i;
    if (i % 3 == 1) crowd.back().write("GET / HTTP/1.1\r\nHost:");  // and no more
    if (i % 100 == 0) visitor.step(1);
  }
  for (int64_t k = 10; k < 30; ++k) ASSERT_EQ(visitor.step(1)["branches"][0]["frame"], k + 1);
  expect_part(http(running.port(), "/"), "HTTP/1.1 200");
  Visitor late(running.port());
  EXPECT_EQ(late.step(1)["branches"][0]["frame"], 1) << "while all thousand are there";
  for (const testing::Socket& one : crowd) ASSERT_EQ(one.read(1, 10000), "") << "and are dropped";
  crowd.clear();
  EXPECT_EQ(visitor.step(1)["branches"][0]["frame"], 31);
}

TEST(Server, DropsAClientThatDoesNotRead) {
  RunningHost running(false, {.server = {.patience = 1}});
  Visitor visitor(running.port());
  WebSocket deaf(running.port(), "", 4096);
  ASSERT_EQ(json::parse(deaf.ask(R"({"do": "join"})").bytes)["world"], "maze");
  const auto began = std::chrono::steady_clock::now();
  bool taken = true;
  const std::string many = [] {
    std::string all;
    for (int i = 0; i < 200; ++i) all += WebSocket::frame(1, R"({"do": "look"})");
    return all;
  }();
  for (int i = 0; i < 1000 && taken; ++i) {
    taken = deaf.socket().write(many);
    if (i % 50 == 0) visitor.step(1);
  }
  EXPECT_FALSE(taken) << "its requests are not read any more";
  EXPECT_TRUE(deaf.socket().is_dropped(10000)) << "then the connection is closed";
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  EXPECT_GT(visitor.step(1)["branches"][0]["frame"], 0);
}

TEST(Server, ARecordingIsAFile) {
  RunningHost running;
  Visitor visitor(running.port());
  visitor.socket.ask_json({{"do", "record"}, {"fps", 20}});
  const std::string path = "/recording/" + visitor.name() + ".gif";
  for (int i = 0; i < 3; ++i) visitor.step(1);
  expect_part(http(running.port(), path), " 404 ");  // not complete
  EXPECT_EQ(visitor.socket.ask_json({{"do", "stop"}})["recording"]["frames"], 3);
  const std::string answer = http(running.port(), path);
  expect_part(answer, "image/gif");
  expect_part(answer, "attachment");
  const std::string file = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_EQ(io::read_gif(io::memory_source("walk.gif", std::as_bytes(std::span(file)))).shape()[0], 3);
}

// Longer than what the system takes at once, to a client that reads slowly but reads.
TEST(Server, ALongFileGoesToASlowClientWhole) {
  RunningHost running(false, {.server = {.patience = 1}});
  Visitor visitor(running.port());
  visitor.socket.ask_json({{"do", "record"}, {"fps", 20}});
  for (int i = 0; i < 200; ++i) visitor.step(i % 6);
  visitor.socket.ask_json({{"do", "stop"}});
  const std::string whole = http(running.port(), "/recording/" + visitor.name() + ".gif");
  ASSERT_GT(whole.size(), 3u * 65536) << "too short to go in pieces";
  testing::Socket slow(running.port(), 4096);
  slow.write("GET /recording/" + visitor.name() + ".gif HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  std::string got;
  for (int i = 0;; ++i) {
    if (i < 8) std::this_thread::sleep_for(std::chrono::milliseconds(400));  // longer than the patience in all
    const std::string part = slow.read(whole.size() / 10 + 1);
    if (part.empty()) break;
    got += part;
  }
  EXPECT_EQ(got.size(), whole.size());
  EXPECT_EQ(got.substr(got.find("\r\n\r\n")), whole.substr(whole.find("\r\n\r\n")));
}

TEST(Server, DropsWalksThatNobodyBegins) {
  RunningHost running(false, {.server = {.patience = 1}, .limits = {.visitors = 1}});
  Visitor visitor(running.port());
  WebSocket silent(running.port()), refused(running.port());
  expect_part(refused.ask_json({{"do", "join"}}).value("error", ""), "places are taken");
  EXPECT_EQ(silent.socket().read(1, 5000), "");
  EXPECT_EQ(refused.socket().read(1, 5000), "");
  EXPECT_EQ(visitor.step(1)["branches"][0]["frame"], 1);
}

TEST(Server, EndsWhileClientsAreThere) {
  std::optional<RunningHost> running(std::in_place);
  Visitor visitor(running->port());
  visitor.socket.send(R"({"do": "step", "action": 1})");
  running.reset();
  while (visitor.socket.receive().opcode == 2) {
  }
  EXPECT_EQ(visitor.socket.socket().read(1), "");
}

TEST(Visitors, ForgetTheOldestMomentsOfTheLongestWalkFirst) {
  testing::TinyScene tiny(false);
  std::string one, two;
  uint64_t moment = 0;
  {
    Visitors all(tiny.scene, {});
    all.answer(one, parse_request(R"({"do": "join"})"));
    moment = all.memory();
  }
  Visitors all(tiny.scene, {.memory = 20 * moment});
  one.clear();
  all.answer(one, parse_request(R"({"do": "join"})"));
  all.answer(two, parse_request(R"({"do": "join"})"));
  const Request step = parse_request(R"({"do": "step", "action": 1})");
  for (int i = 0; i < 5; ++i) all.answer(two, step);
  for (int i = 0; i < 100; ++i) all.answer(one, step);
  EXPECT_LE(all.memory(), 20 * moment);
  EXPECT_EQ(all.visit(two).kept(0), 5);
  EXPECT_GT(all.visit(one).kept(0), 8);
  EXPECT_EQ(all.visit(one).now(0).number, 100);
}

}  // namespace
}  // namespace convssm::serve
