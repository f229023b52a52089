// Event files for TensorBoard: curves and images of a run. A file only grows, by whole records, so a crash loses at
// most what was not flushed. Format: TFRecord frames of `tensorflow.Event` messages.
//   EventWriter events("runs/a");   events.scalar("train/loss", step, loss);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "convssm/io/png.h"

namespace convssm::io {

class EventWriter {
 public:
  // Begins a new file events.out.tfevents.<time>.<host>... in the folder, which is made if it is missing. A run that
  // goes on from a checkpoint gives its step as `purge_step`: TensorBoard drops the points at and after it.
  explicit EventWriter(const std::string& folder, int64_t purge_step = -1);
  ~EventWriter();  // flush(), without its errors
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(const std::string& tag, int64_t step, double value);  // stored as float32
  void image(const std::string& tag, int64_t step, const Image& image);

  // Hands all records to the system. Error(io) if it does not take them; they are kept for the next try.
  void flush();

  const std::string& path() const { return path_; }

 private:
  void add_event(int64_t step, std::string_view content);

  std::string path_;
  std::string pending_;  // whole records only
  int64_t size_ = 0;     // of the file, in whole records
  int descriptor_ = -1;
};

}  // namespace convssm::io
