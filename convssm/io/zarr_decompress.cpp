// The compressors of Zarr chunks. Each is given the size that the result must have. Before it is allocated, the compressed bytes are
// asked whether they can hold that much at all (zarr_codecs.cpp); here they must make neither less nor more.
#include <blosc.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <climits>

#include "convssm/base/error.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"
#include "convssm/io/zarr_codecs.h"

namespace convssm::io {
namespace {

using In = std::span<const std::byte>;
using Out = std::span<std::byte>;

template <typename... Args>
[[noreturn]] void damaged(const std::string& name, fmt::format_string<Args...> text, Args&&... args) {
  throw FormatError(name, 0, fmt::format(text, std::forward<Args>(args)...));
}

void require_size(const std::string& name, const char* codec, uint64_t found, uint64_t expected) {
  if (found != expected) damaged(name, "the {} data says it holds {} bytes, expected {}", codec, found, expected);
}

class Inflater {
 public:
  Inflater(const std::string& name, bool gzip) : name_(name) {
    if (inflateInit2(&stream_, MAX_WBITS + (gzip ? 16 : 0)) != Z_OK) fail(ErrorKind::io, "zlib cannot be started");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  void run(In in, Out out) {
    while (!ended_ && !out.empty()) step(in, out);
    std::byte extra;
    Out more(&extra, 1);
    while (!ended_ && !more.empty()) step(in, more);
    if (!out.empty()) damaged(name_, "the compressed data ends {} bytes too early", out.size());
    if (!ended_) damaged(name_, "the compressed data holds more than the expected bytes");
    if (!in.empty()) damaged(name_, "{} unused bytes after the compressed data", in.size());
  }

 private:
  // zlib counts in 32 bits.
  void step(In& in, Out& out) {
    constexpr size_t most = 1 << 30;
    const size_t given = std::min(in.size(), most), wanted = std::min(out.size(), most);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in = in.subspan(given - stream_.avail_in);
    out = out.subspan(wanted - stream_.avail_out);
    ended_ = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) fail(ErrorKind::io, "no memory left to decompress '{}'", name_);
    if (result == Z_BUF_ERROR) damaged(name_, "the compressed data is cut short");
    if (result != Z_OK && !ended_) {
      damaged(name_, "the compressed data is damaged: {}", stream_.msg ? stream_.msg : "it needs a dictionary");
    }
  }

  const std::string& name_;
  z_stream stream_{};
  bool ended_ = false;
};

void decompress_zstd(const std::string& name, In in, Out out) {
  const unsigned long long declared = ZSTD_getFrameContentSize(in.data(), in.size());
  if (declared == ZSTD_CONTENTSIZE_ERROR) damaged(name, "not zstd data, or cut short");
  const bool one_frame = ZSTD_findFrameCompressedSize(in.data(), in.size()) == in.size();
  if (declared != ZSTD_CONTENTSIZE_UNKNOWN && one_frame) require_size(name, "zstd", declared, out.size());
  const size_t size = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(size)) damaged(name, "the zstd data is damaged: {}", ZSTD_getErrorName(size));
  require_size(name, "zstd", size, out.size());
}

void decompress_blosc(const std::string& name, In in, Out out) {
  size_t declared = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH) damaged(name, "blosc data has at least 16 bytes, found {}", in.size());
  if (blosc_cbuffer_validate(in.data(), in.size(), &declared) != 0) {
    damaged(name, "not blosc data, or cut short: its header does not fit its {} bytes", in.size());
  }
  require_size(name, "blosc", declared, out.size());
  const int size = blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
  constexpr int no_decompressor = -5;
  if (size == no_decompressor) {
    const char* inner = blosc_cbuffer_complib(in.data());
    fail(ErrorKind::data, "{}: packed by blosc with {}, which this libblosc does not have; write it with one of {}",
         name, in_quotes(inner ? inner : "an unknown codec"), blosc_list_compressors());
  }
  if (size < 0 || static_cast<size_t>(size) != out.size()) damaged(name, "the blosc data is damaged");
}

// The size in 4 bytes, then one block.
void decompress_lz4(const std::string& name, In in, Out out) {
  if (in.size() < 4) damaged(name, "lz4 data has at least 4 bytes, found {}", in.size());
  require_size(name, "lz4", load<uint32_t>(in.data()), out.size());
  in = in.subspan(4);
  if (in.size() > INT_MAX || out.size() > INT_MAX) damaged(name, "more lz4 data than there can be");
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                                       static_cast<int>(in.size()), static_cast<int>(out.size()));
  if (size < 0 || static_cast<size_t>(size) != out.size()) damaged(name, "the lz4 data is damaged");
}

}  // namespace

void decompress_zarr(ZarrCodec codec, const std::string& name, In in, Out out) {
  switch (codec) {
    case ZarrCodec::zlib:
      return Inflater(name, false).run(in, out);
    case ZarrCodec::gzip:
      return Inflater(name, true).run(in, out);
    case ZarrCodec::zstd:
      return decompress_zstd(name, in, out);
    case ZarrCodec::blosc:
      return decompress_blosc(name, in, out);
    default:
      return decompress_lz4(name, in, out);
  }
}

}  // namespace convssm::io
