// How the sanitizers run, as part of the programs, so that a test started by hand runs as it does in `make asan`.

// Wide red zones: a step beyond a small array by a whole vector does not reach the array after the next.
extern "C" const char* __asan_default_options() { return "redzone=256:detect_stack_use_after_return=1"; }

extern "C" const char* __tsan_default_options() { return "halt_on_error=1"; }

// Leaks of others: libhdf5 and eccodes do not free all that they have read of a damaged file, fontconfig (below librsvg) keeps what it
// found.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5_serial.so\nleak:libeccodes.so\nleak:libfontconfig\n";
}
