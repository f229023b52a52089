// Plain loops, because threads of the loader run this.
#include "convssm/data/codes.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/data/array_choice.h"
#include "convssm/data/file_check.h"
#include "convssm/data/numbers.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

constexpr int64_t most_codes = int64_t{1} << 31;

// 0 if the file does not say.
int64_t stored_size(const RecordingInfo& info) {
  const auto names = io::array_names(info.path);
  if (std::ranges::find(names, "codebook_size") == names.end()) return 0;
  const io::Array found = io::ArrayFile(info.path, "codebook_size").read();
  double size = 0;
  if (found.element_count() == 1) with_numbers(found, [&](auto values) { size = number(values[0]); });
  if (size >= 1 && size <= static_cast<double>(most_codes) && size == static_cast<double>(static_cast<int64_t>(size))) {
    return static_cast<int64_t>(size);
  }
  fail(ErrorKind::data, "[folder] '{}': codebook_size must be one whole number above 0, found {} {}", info.path,
       io::dtype_name(found.dtype()), io::shape_text(found.shape()));
}

// "" if the file does not say.
std::string stored_tokenizer(const RecordingInfo& info) {
  const auto names = io::array_names(info.path);
  if (std::ranges::find(names, "tokenizer") == names.end()) return "";
  const io::Array found = io::ArrayFile(info.path, "tokenizer").read();
  if (found.dtype() != io::DType::u8 || found.element_count() > 64) {
    fail(ErrorKind::data, "[folder] '{}': tokenizer must be the letters of a hash, found {} {}", info.path,
         io::dtype_name(found.dtype()), io::shape_text(found.shape()));
  }
  const auto letters = found.values<uint8_t>();
  return {letters.begin(), letters.end()};
}

void check_kind(const RecordingInfo& info) {
  if (!io::is_float(info.dtype) && info.dtype != io::DType::bool8 && info.channels == 1) return;
  fail(ErrorKind::data, "[folder] '{}': codes are whole numbers [T,h,w] or (layout: NTHW) [N,T,h,w], found {} {}",
       info.path, io::dtype_name(info.dtype), io::shape_text(info.shape));
}

int64_t largest_code(const RecordingInfo& info) {
  int64_t largest = 0;
  for_each_chunk(info, [&](Recording& recording, int64_t clip, int64_t first, int64_t count) {
    largest = std::max(largest, read_codes(recording, clip, first, count, most_codes).max().item<int64_t>());
    return true;
  });
  return largest;
}

}  // namespace

bool are_codes(const RecordingInfo& info) { return reads_codes(info.key, info.reading.content); }

CodeFormat find_codes(const std::vector<RecordingInfo>& files, int64_t wanted, std::string& reason) {
  const RecordingInfo& first = files[0];
  CodeFormat format{wanted, first.height, first.width};
  const int64_t said = stored_size(first);
  format.tokenizer = stored_tokenizer(first);
  for (const RecordingInfo& file : files) {
    check_kind(file);
    const int64_t own = stored_size(file);
    if (const std::string other = stored_tokenizer(file); other != format.tokenizer) {
      fail(ErrorKind::data, "[folder] codes of one tokenizer are expected: '{}' has those of '{}', '{}' of '{}'",
           first.path, format.tokenizer, file.path, other);
    }
    if (own == said) continue;
    fail(ErrorKind::data,
         "[folder] files of one codebook are expected: '{}' has a codebook_size of {}, '{}' of {} (0: it says none)",
         first.path, said, file.path, own);
  }
  if (wanted > 0 && said > 0 && wanted != said) {
    fail(ErrorKind::data, "[folder] codebook_size {} is given, '{}' says {}", wanted, first.path, said);
  }
  if (said > 0) format.count = said;
  reason = said > 0 ? "as the files say" : "given";
  if (format.count > 0) return format;
  for (const RecordingInfo& file : files) format.count = std::max(format.count, largest_code(file) + 1);
  reason = "by the largest that is there; data.codebook_size says how many there may be";
  return format;
}

void check_codes(const std::vector<RecordingInfo>& files, int64_t count) {
  uint64_t bytes = 0;
  for (const RecordingInfo& file : files) {
    bytes += static_cast<uint64_t>(file.all_frames()) * file.frame_elements() * io::dtype_size(file.dtype);
  }
  if (bytes > FileCheck::at_once) return;
  for (const RecordingInfo& file : files) {
    for_each_chunk(file, [&](Recording& recording, int64_t clip, int64_t first, int64_t frames) {
      read_codes(recording, clip, first, frames, count);
      return true;
    });
  }
}

at::Tensor read_codes(Recording& recording, int64_t clip, int64_t first, int64_t frames, int64_t count) {
  const RecordingInfo& info = recording.info();
  const io::Array stored = recording.read(clip, first, frames);
  at::Tensor codes = at::empty({frames, info.height, info.width}, at::kLong);
  int64_t* out = codes.data_ptr<int64_t>();
  with_numbers(stored, [&](auto values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = number(values[i]);
      if (!(value >= 0 && value < static_cast<double>(count))) {
        const auto at = static_cast<int64_t>(i);
        fail(ErrorKind::data, "[folder] '{}' clip {}, frame {}, row {}, column {}: {} is none of the codes 0 to {}",
             info.path, clip, first + at / (info.height * info.width), at / info.width % info.height, at % info.width,
             value, count - 1);
      }
      *out++ = static_cast<int64_t>(value);
    }
  });
  return codes;
}

}  // namespace convssm::data
