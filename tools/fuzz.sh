#!/usr/bin/env bash
# Runs every fuzz target of a build folder for some seconds, fuzz_NAME from fuzz/seeds/NAME and a scratch corpus, and
# shows the last lines of each. A finding is kept in the build folder and stops the run.
#   tools/fuzz.sh build/fuzz 600
set -euo pipefail

build=$1
seconds=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

run_target() {
  local target=$1 name corpus log
  name=$(basename "$target")
  corpus="$build/corpus/$name"
  log="$build/$name.log"
  mkdir -p "$corpus"
  local seeds="$root/fuzz/seeds/${name#fuzz_}"
  echo "== $name, ${seconds} s"
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/$name-" "$corpus" "$seeds" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz: error: $name has a finding; the input is $build/$name-*, the log $log" >&2
    exit 1
  fi
  tail -n 8 "$log"
}

found=0
while IFS= read -r target; do
  found=1
  run_target "$target"
done < <(find "$build" -type f -executable -name 'fuzz_*' | sort)
if ((found == 0)); then
  echo "fuzz: error: no fuzz_* program in $build" >&2
  exit 1
fi
