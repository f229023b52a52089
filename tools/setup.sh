#!/usr/bin/env bash
# Installs the Debian packages that convssm needs and makes OpenBLAS the BLAS in use.
# Prints nothing and needs no rights when nothing is missing.
#   tools/setup.sh [--fuzz] [--tidy] [--pages] [--writers]     also clang for the fuzzers, clang-tidy, matplotlib, and the
#                                                              programs whose files tests/tools/outside_writers_test.py reads
set -euo pipefail

packages=(
  "g++|C++20 compiler"
  "cmake|build system"
  "ninja-build|build system"
  "ccache|rebuilds in seconds"
  "pkg-config|finds libraries"
  "libtorch-dev|tensors and gradients"
  "libopenblas0-openmp|fast matrix products"
  "libdnnl-dev|fast convolutions (oneDNN)"
  "ocl-icd-opencl-dev|the CMake files of libdnnl-dev ask for it"
  "libhwy-dev|vector instructions chosen at run time (Highway)"
  "libcli11-dev|command line"
  "libfmt-dev|text formatting"
  "nlohmann-json3-dev|JSON"
  "libpng-dev|PNG files"
  "zlib1g-dev|compressed npz files"
  "libgif-dev|GIF files"
  "libtiff-dev|TIFF files"
  "libavcodec-dev|videos and JPEG files"
  "libavformat-dev|videos"
  "libavutil-dev|videos"
  "libswscale-dev|videos"
  "libhdf5-dev|HDF5 files"
  "libnetcdf-dev|NetCDF files"
  "libblosc-dev|chunks of Zarr stores"
  "libzstd-dev|chunks of Zarr stores"
  "liblz4-dev|chunks of Zarr stores"
  "libeccodes-dev|GRIB files"
  "libyaml-cpp-dev|configuration files"
  "libxxhash-dev|checksums of checkpoints"
  "librsvg2-dev|charts as PNG files"
  "fonts-dejavu-core|the letters in them"
  "libwebsockets-dev|the page of convssm serve"
  "libgtest-dev|tests"
  "ffmpeg|tests of the readers of videos"
  "chromium-headless-shell|tests of the pages"
  "clang-format|code layout"
  "python3|drives the runs of docs/results.md, fills the pages"
)
fuzz_packages=("clang|fuzzing" "libclang-rt-14-dev|fuzzing and sanitizers" "libomp-dev|OpenMP for clang")
tidy_packages=("clang-tidy|static checks")
writers_packages=("python3-numpy|arrays" "python3-h5py|HDF5 files" "python3-netcdf4|NetCDF files" "python3-xarray|Zarr stores"
                  "python3-zarr|Zarr stores" "python3-eccodes|GRIB files")
pages_packages=("python3-matplotlib|curves of docs/performance.md")

say() { echo "setup: $*"; }
die() {
  echo "setup: error: $*" >&2
  exit 1
}

read_options() {
  for option in "$@"; do
    case "$option" in
      --fuzz) packages+=("${fuzz_packages[@]}") ;;
      --tidy) packages+=("${tidy_packages[@]}") ;;
      --pages) packages+=("${pages_packages[@]}") ;;
      --writers) packages+=("${writers_packages[@]}") ;;
      -h | --help)
        sed -n '2,5s/^# //p' "$0"
        exit 0
        ;;
      *)
        echo "setup: error: unknown option '$option' (known: --fuzz --tidy --pages --writers)" >&2
        exit 2
        ;;
    esac
  done
}

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" == installed ]]
}

require_debian() {
  if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then return; fi
  {
    echo "setup: error: this is not a Debian system (no apt-get). convssm needs the following, by their Debian names:"
    printf '  %s\n' "${packages[@]%%|*}"
    echo "Install them with your package manager, then run cmake --preset release."
  } >&2
  exit 1
}

as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "installing needs root. As root, run: ${BASH_SOURCE[0]}"
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
    "$@" </dev/null
}

update_lists() {
  if apt update; then return; fi
  say "apt-get update failed, trying once more"
  sleep 5
  apt update || say "apt-get update failed again, going on with the package lists that are there"
}

install_missing() {
  local missing=()
  for entry in "${packages[@]}"; do
    is_installed "${entry%%|*}" || missing+=("$entry")
  done
  if ((${#missing[@]} == 0)); then return; fi
  say "installing these Debian packages:"
  for entry in "${missing[@]}"; do printf '  %-22s %s\n' "${entry%%|*}" "${entry#*|}"; done
  update_lists
  apt install --no-install-recommends "${missing[@]%%|*}" ||
    die "apt-get could not install: ${missing[*]%%|*}. Is the network there, and 'main' in /etc/apt/sources.list?"
}

# Debian keeps several BLAS libraries side by side; the reference one is 50 times slower.
select_openblas() {
  local name=$1 query chosen openblas
  query=$(LC_ALL=C update-alternatives --query "$name" 2>/dev/null) || return 0
  chosen=$(sed -n 's/^Value: //p' <<<"$query")
  if [[ "$chosen" == *openblas* ]]; then return; fi
  openblas=$(sed -n 's/^Alternative: \(.*openblas-openmp.*\)$/\1/p' <<<"$query" | head -n 1)
  if [[ -z "$openblas" ]]; then die "OpenBLAS is installed but not offered for $name; see update-alternatives --query $name"; fi
  say "$name was $chosen, which is slow; now $openblas"
  as_root update-alternatives --set "$name" "$openblas" >/dev/null
}

read_options "$@"
require_debian
install_missing
multiarch=$(g++ -print-multiarch)
select_openblas "libblas.so.3-$multiarch"
select_openblas "liblapack.so.3-$multiarch"
