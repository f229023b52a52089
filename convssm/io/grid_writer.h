// Writes files that describe themselves, the counterpart of io/grid_file.h: what the file will hold is announced, then every variable
// comes in order, a few of its rows at a time, in the memory of a row of chunks of each.
//   GridLayout layout{.dimensions = {{"time", 1200}, {"y", 64}, {"x", 64}}, .records = "time"};
//   layout.variables = {{.name = "t2m", .dtype = DType::f32, .dimensions = {"time", "y", "x"}}};
//   auto out = open_grid_writer("future.nc", layout);
//   for (const Array& frame : frames) out->write("t2m", frame);
//   out->close();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/io/grid_file.h"

namespace convssm::io {

struct GridDimension {
  std::string name = {};
  int64_t size = 1;  // at least 1; of records that are announced, 0 too
};

struct GridLayout {
  std::vector<GridDimension> dimensions = {};
  std::string records = {};  // the dimension along which records come one after the other; "" if there is none
  // Names without groups. A shape need not be given, it is that of the dimensions; chunks are chosen where there are none. The
  // attribute _FillValue is written in the type of its variable, others in their own.
  std::vector<GridVariable> variables = {};
  GridAttributes attributes = {};
  bool compressed = true;
  int zarr_version = 2;  // or 3, which not every program reads
};

// Nothing is at the path before close(); without it there never is. Error(io) with the reason if the system refuses to write.
class GridWriter {
 public:
  virtual ~GridWriter() = default;
  GridWriter(const GridWriter&) = delete;
  GridWriter& operator=(const GridWriter&) = delete;

  // The next rows of a variable along the records, or along its first dimension if it has no records: an array of its type and shape
  // but for their number, or one row without that dimension. Error(usage) for others, and for more than were announced.
  void write(const std::string& name, const Array& rows);

  // Completes the file. Error(usage) unless all of every variable came.
  void close();

  // Completes the file with the records that came, of every variable as many.
  void close_early();

 protected:
  // The layout is checked and complete: every variable has its shape and chunks. `kind` names the class in messages.
  GridWriter(std::string path, GridLayout layout);

  const std::string& path() const { return path_; }
  const GridLayout& layout() const { return layout_; }  // after finish() began with fewer records: with those
  size_t axis_of(const GridVariable& variable) const;   // along which its rows come

  // Rows of the variable of that number from `first` on: a row of chunks, or what is left for the last one.
  virtual void put(size_t variable, int64_t first, const Array& rows) = 0;
  virtual void finish() = 0;

 private:
  struct Progress {
    int64_t written = 0, held = 0;  // rows: handed to put(), and waiting for the rest of their chunks
    Array rows = {};
  };

  void append(size_t variable, const Array& rows, int64_t count);
  void flush(size_t variable);
  void complete();

  std::string path_;
  GridLayout layout_;
  std::vector<Progress> progress_;
  bool closed_ = false;
};

// .nc: NetCDF-4. .zarr: a store of Zarr, in place of one that is there. Error(usage) for other endings, for a layout that the format
// cannot hold, and for a folder in the way that is no store.
std::unique_ptr<GridWriter> open_grid_writer(const std::string& path, const GridLayout& layout);

// ".nc", ".zarr"
std::vector<std::string> grid_endings();

}  // namespace convssm::io
