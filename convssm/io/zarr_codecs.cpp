// The stages of a chunk, one after another. Whole arrays go from stage to stage; what can be done in place is.
#include "convssm/io/zarr_codecs.h"

#include <cstring>
#include <type_traits>

#include "convssm/base/error.h"
#include "convssm/io/byte_cursor.h"
#include "convssm/io/crc32c.h"
#include "convssm/io/layout.h"
#include "convssm/io/source.h"
#include "convssm/io/zarr_number.h"

namespace convssm::io {
namespace {

// How many bytes one compressed byte can stand for, at most: a block of 128 KiB of one value takes 4 bytes of zstd.
uint64_t highest_ratio(ZarrCodec codec) {
  switch (codec) {
    case ZarrCodec::zlib:
    case ZarrCodec::gzip:
      return 1032;
    case ZarrCodec::lz4:
      return 255;
    default:
      return 1 << 15;
  }
}

Array decompress(const ZarrStage& stage, const std::string& name, const Array& in) {
  if (stage.size / highest_ratio(stage.codec) > in.byte_count()) {
    throw FormatError(name, 0,
                      fmt::format("{} compressed bytes cannot hold the {} of a chunk: damaged or cut short",
                                  in.byte_count(), stage.size));
  }
  Array out = byte_array(stage.size);
  decompress_zarr(stage.codec, name, in.bytes(), out.bytes());
  return out;
}

Array without_checksum(const std::string& name, const Array& in) {
  if (in.byte_count() < 4) throw FormatError(name, 0, "too short for its checksum");
  const auto content = in.bytes().first(in.byte_count() - 4);
  const auto stored = load<uint32_t>(in.bytes().data() + content.size());
  const uint32_t computed = crc32c(as_text(content));
  if (stored != computed) {
    throw FormatError(name, content.size(), fmt::format("the checksum is {:08x}, not {:08x}", computed, stored));
  }
  Array out = byte_array(content.size());
  std::ranges::copy(content, out.bytes().begin());
  return out;
}

// The first bytes of all elements come first, then the second ones, ...
Array unshuffled(const std::string& name, size_t item, const Array& in) {
  if (in.byte_count() % item != 0) {
    throw FormatError(name, 0, fmt::format("{} bytes are not elements of {}", in.byte_count(), item));
  }
  Array out = byte_array(in.byte_count());
  const size_t count = in.byte_count() / item;
  const std::byte* from = in.bytes().data();
  for (size_t byte = 0; byte < item; ++byte) {
    std::byte* to = out.bytes().data() + byte;
    for (size_t i = 0; i < count; ++i) to[i * item] = *from++;
  }
  return out;
}

// Calls `each` with every element of `in` and a pointer to its place in `out`, whose type is To.
template <typename To, typename Each>
void for_each_element(const ZarrStage& stage, const Array& in, Array& out, const Each& each) {
  with_number_type(stage.from, [&](auto number) {
    using From = decltype(number);
    const std::byte* from = in.bytes().data();
    std::byte* to = out.bytes().data();
    for (size_t i = 0; i < in.byte_count() / sizeof(From); ++i) {
      const To value = each(load<From>(from + i * sizeof(From)));
      std::memcpy(to + i * sizeof(To), &value, sizeof value);
    }
  });
}

// Each element is a difference to the one before. Whole numbers wrap around, which unsigned ones do by definition; floats are summed
// in the type of the result, as they were when the differences were taken.
Array summed(const ZarrStage& stage, const Array& in) {
  Array out = byte_array(stage.size);
  with_number_type(stage.to, [&](auto number) {
    using To = decltype(number);
    if constexpr (std::is_integral_v<To>) {
      uint64_t sum = 0;
      for_each_element<To>(stage, in, out, [&](auto value) {
        if constexpr (std::is_integral_v<decltype(value)>) sum += static_cast<uint64_t>(value);
        return static_cast<To>(sum);
      });
    } else {
      To sum = 0;
      for_each_element<To>(stage, in, out, [&](auto value) { return sum += static_cast<To>(value); });
    }
  });
  return out;
}

Array rescaled(const ZarrStage& stage, const Array& in) {
  Array out = byte_array(stage.size);
  const auto restore = [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), float>)
      return value / static_cast<float>(stage.scale) + static_cast<float>(stage.offset);
    else
      return static_cast<double>(value) / stage.scale + stage.offset;
  };
  if (stage.to == DType::f32)
    for_each_element<float>(stage, in, out, [&](auto value) { return static_cast<float>(restore(value)); });
  else
    for_each_element<double>(stage, in, out, [&](auto value) { return static_cast<double>(restore(value)); });
  return out;
}

Array transposed(const ZarrStage& stage, const Array& in) {
  Array out = byte_array(stage.size);
  gather_items(stage.shape, stage.strides, stage.item, in.bytes().data(), out.bytes());
  return out;
}

Array undo(const ZarrStage& stage, const std::string& name, Array in) {
  switch (stage.codec) {
    case ZarrCodec::crc32c:
      return without_checksum(name, in);
    case ZarrCodec::shuffle:
      return unshuffled(name, stage.item, in);
    case ZarrCodec::swap:
      reverse_items(in.bytes(), stage.item);
      return in;
    case ZarrCodec::delta:
      return summed(stage, in);
    case ZarrCodec::scale_offset:
      return rescaled(stage, in);
    case ZarrCodec::transpose:
      return transposed(stage, in);
    default:
      return decompress(stage, name, in);
  }
}

}  // namespace

Array byte_array(uint64_t size) { return Array(DType::u8, {static_cast<int64_t>(size)}); }

Array decode_zarr_chunk(const ZarrCodecs& codecs, const std::string& name, Array bytes) {
  if (!codecs.compressed && bytes.byte_count() != codecs.stored_size) {
    throw FormatError(name, 0,
                      fmt::format("a chunk of {} bytes is expected, found {}", codecs.stored_size, bytes.byte_count()));
  }
  for (const ZarrStage& stage : codecs.stages) bytes = undo(stage, name, std::move(bytes));
  return bytes;
}

}  // namespace convssm::io
