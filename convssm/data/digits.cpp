// Digits of IDX files, and the filter that resizes a digit. The whole file is kept: MNIST has 47 MB.
#include "convssm/data/digits.h"

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/io/idx.h"

namespace convssm::data {
namespace {

io::Array read_images(const std::string& path) {
  const io::Array images = io::read_idx(path);
  const auto& shape = images.shape();
  if (images.dtype() != io::DType::u8 || shape.size() != 3 || shape[1] != shape[2] || shape[0] < 1 || shape[1] < 1) {
    fail(ErrorKind::data, "[digits] '{}' must hold square images, u8 [n,s,s], found {} {}", path,
         io::dtype_name(images.dtype()), io::shape_text(shape));
  }
  return images;
}

// u8 [n]; nothing if the path is "".
io::Array read_labels(const std::string& path, int64_t count) {
  if (path.empty()) return {io::DType::u8, {0}};
  const io::Array labels = io::read_idx(path);
  if (labels.dtype() != io::DType::u8 || labels.shape() != std::vector<int64_t>{count}) {
    fail(ErrorKind::data, "[digits] '{}' must hold a label for each of {} images, u8 [{}], found {} {}", path, count,
         count, io::dtype_name(labels.dtype()), io::shape_text(labels.shape()));
  }
  return labels;
}

// A range of images of one file.
struct ImageRange {
  ImageRange(const io::Array& all, const io::Array& all_labels, uint64_t first_index, uint64_t number)
      : images(all), labels(all_labels), first(first_index), count(number) {}

  Digit digit(uint64_t index) const {
    const int64_t size = images.shape()[1];
    const auto pixels = images.values<uint8_t>().subspan((first + index) * size * size, size * size);
    const int label = labels.element_count() == 0 ? -1 : labels.values<uint8_t>()[first + index];
    return {size, {pixels.begin(), pixels.end()}, label};
  }

  io::Array images, labels;
  uint64_t first, count;
};

class IdxSource : public DigitSource {
 public:
  IdxSource(ImageRange train, ImageRange valid, ImageRange test, std::string text)
      : train_(std::move(train)), valid_(std::move(valid)), test_(std::move(test)), text_(std::move(text)) {}

  uint64_t count(Split split) const override { return of(split).count; }

  Digit digit(Split split, uint64_t index) const override {
    if (index >= count(split)) fail(ErrorKind::usage, "[digits] there are {} digits, got {}", count(split), index);
    return of(split).digit(index);
  }

  std::string summary() const override { return text_; }

 private:
  const ImageRange& of(Split split) const {
    return split == Split::train ? train_ : split == Split::valid ? valid_ : test_;
  }

  ImageRange train_, valid_, test_;
  std::string text_;
};

// The weights of the old pixels in each new one: a triangle as wide as the coarser of the two grids.
std::vector<std::vector<double>> filter_weights(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<std::vector<double>> weights(static_cast<size_t>(to), std::vector<double>(static_cast<size_t>(from)));
  for (int64_t i = 0; i < to; ++i) {
    auto& row = weights[static_cast<size_t>(i)];
    double sum = 0;
    for (int64_t j = 0; j < from; ++j) {
      const double offset = static_cast<double>(j) + 0.5 - (static_cast<double>(i) + 0.5) * scale;
      sum += row[static_cast<size_t>(j)] = std::max(0.0, 1 - std::abs(offset) / reach);
    }
    for (double& weight : row) weight /= sum;
  }
  return weights;
}

}  // namespace

std::unique_ptr<DigitSource> idx_digits(const IdxDigits& files) {
  if (files.mix_splits && !files.test_images.empty()) {
    fail(ErrorKind::usage, "[digits] mix_splits takes the test digits from the training images; leave test_images out");
  }
  const io::Array images = read_images(files.images);
  const io::Array labels = read_labels(files.labels, images.shape()[0]);
  const auto count = static_cast<uint64_t>(images.shape()[0]);
  if (files.mix_splits) {
    const ImageRange all(images, labels, 0, count);
    return std::make_unique<IdxSource>(all, all, all,
                                       fmt::format("{} digits of {} for all splits", count, files.images));
  }
  const bool test_is_apart = !files.test_images.empty();
  if (count < (test_is_apart ? 2 : 3)) {
    fail(ErrorKind::data, "[digits] '{}' holds {} images: {} needs one each", files.images, count,
         test_is_apart ? "training and validation" : "training, validation and testing");
  }
  const uint64_t for_test = test_is_apart ? 0 : std::max<uint64_t>(1, count / 6);
  const uint64_t for_valid = std::max<uint64_t>(1, count / 12), train = count - for_test - for_valid;
  const ImageRange train_images(images, labels, 0, train), valid_images(images, labels, train, for_valid);
  if (!test_is_apart) {
    return std::make_unique<IdxSource>(
        train_images, valid_images, ImageRange(images, labels, train + for_valid, for_test),
        fmt::format("{} digits of {} for training, the twelfth after them ({}) for validation, the last sixth ({}) for "
                    "testing",
                    train, files.images, for_valid, for_test));
  }
  const io::Array test = read_images(files.test_images);
  const auto test_count = static_cast<uint64_t>(test.shape()[0]);
  return std::make_unique<IdxSource>(
      train_images, valid_images, ImageRange(test, read_labels(files.test_labels, test.shape()[0]), 0, test_count),
      fmt::format("{} digits of {} for training, its last twelfth ({}) for validation, {} of {} for testing", train,
                  files.images, for_valid, test_count, files.test_images));
}

Digit resize(const Digit& digit, int64_t size) {
  if (size < 1) fail(ErrorKind::usage, "[resize] size must be positive, got {}", size);
  if (size == digit.size) return digit;
  const auto weights = filter_weights(digit.size, size);
  const auto from = static_cast<size_t>(digit.size), to = static_cast<size_t>(size);
  std::vector<double> wide(from * to);  // [from, to]: columns resized, rows not yet
  for (size_t row = 0; row < from; ++row) {
    for (size_t i = 0; i < to; ++i) {
      for (size_t j = 0; j < from; ++j) wide[row * to + i] += weights[i][j] * digit.pixels[row * from + j];
    }
  }
  Digit out{size, std::vector<uint8_t>(to * to), digit.label};
  for (size_t i = 0; i < to; ++i) {
    for (size_t column = 0; column < to; ++column) {
      double sum = 0;
      for (size_t j = 0; j < from; ++j) sum += weights[i][j] * wide[j * to + column];
      out.pixels[i * to + column] = static_cast<uint8_t>(std::lround(std::clamp(sum, 0.0, 255.0)));
    }
  }
  return out;
}

}  // namespace convssm::data
