# Debian 12 packages, installed by tools/setup.sh. With sanitizers or fuzzers only base/ and io/ are built,
# which need no libtorch.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
if(NOT CONVSSM_SANITIZE AND NOT CONVSSM_BUILD_FUZZERS)
  find_package(Torch REQUIRED)
  find_package(hwy REQUIRED)
  find_package(dnnl REQUIRED)
  find_package(CLI11 REQUIRED)
endif()
