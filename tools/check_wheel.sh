#!/usr/bin/env bash
# Builds everything with the libtorch of a torch wheel and runs all tests on the CPU. Not part of .ci/run: the wheel and what
# it brings take gigabytes.
#   tools/check_wheel.sh [PYTHON]     PYTHON has torch >= 2.7; without it, one is made in build/wheel_python by pip
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "=== $*"; }

python=${1:-}
if [[ -z "$python" ]]; then
  python=build/wheel_python/bin/python
  if [[ ! -x "$python" ]]; then
    say "installing torch into build/wheel_python"
    python3 -m venv build/wheel_python
    "$python" -m pip install --quiet torch numpy
  fi
fi
python=$(realpath -s "$python")
jobs=$(awk -v cpus="$(nproc)" '/^MemAvailable/ {n = int($2 / 3145728); print (n < 1 ? 1 : n > cpus ? cpus : n)}' /proc/meminfo)

tools/setup.sh
say "a Python without torch, and a wheel that is too old, are refused"
stub=$(mktemp -d)
trap 'rm -rf "$stub"' EXIT
refused() { # NAME, what its Python says of torch, the words that must come
  printf '#!/bin/sh\n%s\n' "$2" >"$stub/python" && chmod +x "$stub/python"
  local text
  if text=$(cmake --preset wheel -B "$stub/$1" -DCONVSSM_PYTHON="$stub/python" 2>&1); then
    echo "it was accepted" >&2
    exit 1
  fi
  text=$(tr -s ' \n' ' ' <<<"$text")
  grep -oE "$3" <<<"$text" || { echo "$text" >&2; exit 1; }
}
refused absent 'exit 1' 'CONVSSM_TORCH=wheel, but .* has no torch[^)]*[)][^:]*: cmake [^ ]* wheel [^ ]*'
refused old "echo '2.6.0;/somewhere/torch'" 'torch >= 2.7 is needed, found 2.6.0[^.]*[.][^)]*[)]'

say "build"
cmake --preset wheel -DCONVSSM_PYTHON="$python" -DCONVSSM_WERROR=ON | grep "libtorch"
cmake --build --preset wheel -j "$jobs"
say "tests"
ctest --test-dir build/wheel --output-on-failure
say "the program"
build/wheel/bin/convssm doctor | sed -n '/Software/,/^$/p'
code=0
text=$(build/wheel/bin/convssm evaluate pretrained/moving-digits-convs5 --device cuda:99 2>&1) || code=$?
echo "$text"
[ "$code" = 2 ] && grep -q "cuda:99" <<<"$text" || { echo "expected exit 2 and a message, got $code" >&2; exit 1; }
build/wheel/bin/convssm generate pretrained/moving-digits-convs5 \
  --context pretrained/moving-digits-convs5/context.npy --frames 100 --out "$stub/future.npy"
say "all passed with torch $("$python" -c 'import torch; print(torch.__version__)')"
