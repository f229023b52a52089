// Follows what a chunk is between two codecs: elements of a type, bytes of a known size, or compressed bytes. Codecs in an order that
// nobody writes (two compressors, a filter of numbers behind one of bytes) are refused, so that the size of every stage is known.
#include "convssm/io/zarr_codec_plan.h"

#include <algorithm>
#include <utility>

#include "convssm/io/text.h"
#include "convssm/io/zarr_metadata.h"

namespace convssm::io {
namespace {

constexpr std::array<std::pair<std::string_view, ZarrCodec>, 5> compressors = {{{"zlib", ZarrCodec::zlib},
                                                                                {"gzip", ZarrCodec::gzip},
                                                                                {"zstd", ZarrCodec::zstd},
                                                                                {"blosc", ZarrCodec::blosc},
                                                                                {"lz4", ZarrCodec::lz4}}};

bool is_summable(DType dtype) { return dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::bool8; }

}  // namespace

ZarrCodecPlan::ZarrCodecPlan(const ZarrPlace& place, DType dtype, bool big_endian, std::vector<int64_t> shape)
    : place_(place), dtype_(dtype), big_endian_(big_endian), shape_(std::move(shape)), size_(bytes_of(dtype)) {
  codecs_.decoded_size = codecs_.most_memory = size_;
}

uint64_t ZarrCodecPlan::bytes_of(DType dtype) const {
  const auto size = checked_byte_count(shape_, dtype_size(dtype));
  if (!size || *size > INT64_MAX / 16) place_.fail("no chunk can have the shape {}", shape_text(shape_));
  return *size;
}

void ZarrCodecPlan::refuse(std::string reason) {
  if (refusal_.empty()) refusal_ = std::move(reason);
}

void ZarrCodecPlan::transpose(const std::vector<int64_t>& order) {
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  bool permutes = order.size() == shape_.size();
  for (size_t i = 0; permutes && i < sorted.size(); ++i) permutes = sorted[i] == static_cast<int64_t>(i);
  if (!permutes) place_.fail("the order {} is not one of {} dimensions", shape_text(order), shape_.size());
  if (bytes_) place_.fail("'transpose' must come before 'bytes'");
  ZarrStage stage{.codec = ZarrCodec::transpose, .size = size_, .item = dtype_size(dtype_), .shape = shape_};
  stage.strides.resize(shape_.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= shape_[static_cast<size_t>(order[i])]) {
    stage.strides[static_cast<size_t>(order[i])] = stride;
  }
  for (size_t i = 0; i < order.size(); ++i) shape_[i] = stage.shape[static_cast<size_t>(order[i])];
  codecs_.stages.push_back(std::move(stage));
}

void ZarrCodecPlan::to_bytes(bool big_endian) {
  if (std::exchange(bytes_, true)) place_.fail("its codecs make bytes of it twice");
  const size_t item = dtype_size(dtype_);
  if (big_endian && item > 1) codecs_.stages.push_back({.codec = ZarrCodec::swap, .size = size_, .item = item});
}

void ZarrCodecPlan::add(const std::string& name, const nlohmann::json& configuration) {
  const auto* compressor = std::ranges::find(compressors, std::string_view(name), [](auto& it) { return it.first; });
  if (name == "delta" || name == "fixedscaleoffset" || name == "quantize") {
    add_numbers(name, configuration);
  } else if (name == "bitround") {
    // Rounded numbers are numbers.
  } else if (name != "shuffle" && name != "crc32c" && compressor == compressors.end()) {
    refuse(fmt::format(
        "is stored with the codec {}, which is not read here; write it with blosc, zstd, gzip, zlib or lz4, without "
        "filters or with shuffle, delta, fixedscaleoffset",
        in_quotes(name)));
  } else {
    if (!bytes_) to_bytes(big_endian_);
    if (name == "shuffle")
      add_shuffle(configuration);
    else if (name == "crc32c")
      add_checksum(configuration);
    else
      add_compressor(compressor->second);
  }
}

// Filters that compute: from `dtype` to `astype` when a chunk is written.
void ZarrCodecPlan::add_numbers(const std::string& name, const nlohmann::json& configuration) {
  const ZarrType to = parse_zarr_type(place_, zarr_text(place_, configuration, "dtype"));
  const bool same = zarr_member(configuration, "astype") == nullptr;
  const ZarrType from = same ? to : parse_zarr_type(place_, zarr_text(place_, configuration, "astype"));
  if (bytes_) return refuse(fmt::format("has the filter '{}' behind one of bytes, which is not read here", name));
  const bool known = to.dtype == dtype_ && from.dtype && is_summable(*to.dtype) && is_summable(*from.dtype);
  const bool to_float = known && is_float(*to.dtype), from_float = known && is_float(*from.dtype);
  if (!known || (name == "delta" && from_float && !to_float) || (name == "fixedscaleoffset" && !to_float) ||
      (name == "quantize" && from.dtype != to.dtype)) {
    return refuse(fmt::format("has a filter '{}' between types that are not read here", name));
  }
  ZarrStage stage{.codec = ZarrCodec::delta, .size = size_, .from = *from.dtype, .to = *to.dtype};
  if (name == "fixedscaleoffset") {
    const auto number = [&](const char* key) {
      const nlohmann::json* value = zarr_member(configuration, key);
      const auto found = value ? zarr_number(*value) : std::nullopt;
      if (!found) place_.fail("expected a number as '{}' of '{}'", key, name);
      return *found;
    };
    stage.codec = ZarrCodec::scale_offset;
    stage.scale = number("scale"), stage.offset = number("offset");
  }
  if (name != "quantize") codecs_.stages.push_back(std::move(stage));
  dtype_ = *from.dtype, big_endian_ = from.big_endian;
  size_ = bytes_of(dtype_);
  codecs_.most_memory = std::max(codecs_.most_memory, size_);
}

void ZarrCodecPlan::add_shuffle(const nlohmann::json& configuration) {
  const nlohmann::json* value = zarr_member(configuration, "elementsize");
  const uint64_t item = value == nullptr ? 4 : value->is_number_unsigned() ? value->get<uint64_t>() : 0;
  if (item < 1 || item > 4096) place_.fail("'elementsize' of 'shuffle' must be a number from 1 to 4096");
  codecs_.stages.push_back({.codec = ZarrCodec::shuffle, .item = item});
}

void ZarrCodecPlan::add_checksum(const nlohmann::json& configuration) {
  const nlohmann::json* location = zarr_member(configuration, "location");
  if (location != nullptr && *location != "end")
    return refuse("has a checksum before its data, which is not read here");
  codecs_.stages.push_back({.codec = ZarrCodec::crc32c});
  size_ += 4;
}

void ZarrCodecPlan::add_compressor(ZarrCodec codec) {
  if (std::exchange(compressed_, true)) return refuse("is compressed twice, which is not read here");
  codecs_.stages.push_back({.codec = codec, .size = size_});
  codecs_.most_memory = std::max(codecs_.most_memory, size_);
}

ZarrCodecs ZarrCodecPlan::finish() {
  if (!bytes_) to_bytes(big_endian_);
  codecs_.compressed = compressed_;
  codecs_.stored_size = compressed_ ? 0 : size_;
  std::ranges::reverse(codecs_.stages);
  return std::move(codecs_);
}

}  // namespace convssm::io
