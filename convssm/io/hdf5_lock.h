// libhdf5 of Debian is not made for threads: whoever calls it, or a library that does, holds this lock.
#pragma once

#include <mutex>

namespace convssm::io {

// The first call also makes libhdf5 silent, keeps it from loading filters from the disk, and from cleaning up when the program ends.
std::recursive_mutex& hdf5_lock();

}  // namespace convssm::io
