// TIFF files of several pages, a frame each, numbers as they are: any type of 8 to 64 bits, any number of channels; packed without loss,
// BigTIFF.
//   TiffWriter out("clip.tif", DType::f32, 64, 64, 1);   out.write(page) ...   out.close();
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "convssm/io/array.h"

namespace convssm::io {

class TiffWriter {
 public:
  // Nothing is at the path before close(); without it there never is. Error(usage) for types that TIFF has not.
  TiffWriter(const std::string& path, DType dtype, int64_t height, int64_t width, int64_t channels);
  ~TiffWriter();
  TiffWriter(const TiffWriter&) = delete;
  TiffWriter& operator=(const TiffWriter&) = delete;

  void write(const Array& pages);  // [T,H,W,C]
  void close();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace convssm::io
