// What this process and this machine have of memory. Sizes are bytes; 0 where the system does not say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace convssm {

uint64_t current_rss();     // resident memory of this process now
void return_free_memory();  // what was freed and is kept for later goes back to the system, where it takes it
uint64_t minor_faults();    // page faults without disk access so far: each one is a page the kernel had to clear

uint64_t total_memory();      // of the machine, or of the container if that is less
uint64_t available_memory();  // what can be allocated without swapping, within the container's limit
uint64_t page_size();

// "always", "madvise" or "never"; "unknown" where the kernel does not say.
std::string huge_page_mode();

// The word in brackets, as the kernel marks a choice: "always [madvise] never" gives "madvise".
std::string bracketed_word(const std::string& text);

// "12GiB" -> 12 * 2^30, "800MB" -> 800 * 10^6, since that is how memory is sold; nothing if it is not a number with a unit.
std::optional<uint64_t> parse_bytes(const std::string& text);

// 1536 -> "1.5 KiB", 0 -> "0 B".
std::string format_bytes(uint64_t bytes);

}  // namespace convssm
