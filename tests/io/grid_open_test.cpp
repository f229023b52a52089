// Grids by what they are, not by their names.
#include "convssm/io/grid_open.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/io/grib.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

TEST(GridOpen, WhatAFileIsDecides) {
  const ScratchFolder folder;
  for (const auto& [name, kind] : {std::pair{"netcdf/records.nc", "NetCDF-3"},
                                   {"netcdf/four.nc", "NetCDF-4"},
                                   {"zarr/v2.zarr", "Zarr v2"},
                                   {"zarr/v3.zarr", "Zarr v3"},
                                   {"grib/first.grib", "GRIB"}}) {
    if (std::string(kind) == "GRIB" && !reads_grib()) continue;
    std::filesystem::create_symlink(data_path(name), folder.path("any"));
    EXPECT_TRUE(is_grid(folder.path("any"))) << name;
    EXPECT_EQ(open_grid(folder.path("any"))->kind(), kind);
    std::filesystem::remove(folder.path("any"));
  }
}

// h5py made it: no dimension scales.
TEST(GridOpen, PlainHdf5) {
  const auto file = open_grid(data_path("minari.h5"));
  const GridVariable& actions = file->variable("episode_0/actions");
  EXPECT_EQ(actions.dimensions[0], "episode_0/actions_dim_0");
  EXPECT_EQ(file->read(actions).shape(), actions.shape);
}

TEST(GridOpen, SaysWhatItIsOtherwise) {
  const ScratchFolder folder;
  expect_error(ErrorKind::data, "is a NumPy array, not NetCDF, HDF5, GRIB or Zarr",
               [] { open_grid(data_path("little_f4.npy")); });
  expect_error(ErrorKind::data, "is of no kind that is known here", [&] { open_grid(folder.path()); });
  expect_error(ErrorKind::io, "nowhere", [] { open_grid("nowhere"); });
  EXPECT_FALSE(is_grid(data_path("little_f4.npy")));
  EXPECT_FALSE(is_grid(folder.path()));
  EXPECT_FALSE(is_grid("nowhere"));
}

}  // namespace
}  // namespace convssm::io
