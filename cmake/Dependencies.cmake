# Debian 12 packages, installed by tools/setup.sh; libtorch is chosen in Torch.cmake. The fuzzers are built from base/ and io/
# alone, which need no libtorch.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GIF REQUIRED)
find_package(TIFF 4.5 REQUIRED)  # which bounds its memory and reports errors of each file apart
find_package(yaml-cpp REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBAV REQUIRED IMPORTED_TARGET libavformat libavcodec libswscale libavutil)
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5)
pkg_check_modules(NETCDF REQUIRED IMPORTED_TARGET netcdf)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(BLOSC REQUIRED IMPORTED_TARGET blosc)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(RSVG REQUIRED IMPORTED_TARGET librsvg-2.0)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
set(file_format_libraries PNG::PNG ZLIB::ZLIB GIF::GIF TIFF::TIFF yaml-cpp PkgConfig::LIBAV PkgConfig::HDF5 PkgConfig::NETCDF PkgConfig::XXHASH
                          PkgConfig::BLOSC PkgConfig::ZSTD PkgConfig::LZ4)
set(drawing_libraries $<LINK_ONLY:PkgConfig::RSVG>)  # its headers are for report/picture.cpp alone
set(convssm_fmt fmt::fmt)
if(NOT CONVSSM_BUILD_FUZZERS)
  set(CONVSSM_TORCH debian CACHE STRING "Which libtorch: debian (libtorch-dev) or wheel (of the torch that python3 has)")
  set_property(CACHE CONVSSM_TORCH PROPERTY STRINGS debian wheel)
  set(convssm_needs_onednn ON)
  include(cmake/Torch.cmake)
  find_package(hwy REQUIRED)
  find_package(CLI11 REQUIRED)
  pkg_check_modules(WEBSOCKETS REQUIRED IMPORTED_TARGET libwebsockets)  # for the program alone
endif()
