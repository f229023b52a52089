// An entry that cannot be read (slices of a partitioned variable, texts) is noted with its reason and only refused when
// asked for: checkpoints hold such entries beside the weights that are wanted. All others are checked at once.
#include "convssm/io/tf_bundle.h"

#include "convssm/base/error.h"
#include "convssm/io/byte_cursor.h"
#include "convssm/io/crc32c.h"
#include "convssm/io/sstable.h"
#include "convssm/io/text.h"
#include "convssm/io/tf_bundle_entry.h"

namespace convssm::io {
namespace {

constexpr uint64_t reader_version = 1;  // TensorFlow's kTensorBundleVersion

std::shared_ptr<const Source> open_data(const std::string& prefix) {
  const std::string path = prefix + ".data-00000-of-00001";
  try {
    return open_source(path);
  } catch (const Error& error) {
    fail(error.kind(), "{} (it holds the tensors of '{}.index'; both files are needed)", error.what(), prefix);
  }
}

void check_header(const Source& source, uint64_t offset, const BundleHeader& header) {
  if (header.shards != 1) {
    source.fail(offset,
                "the checkpoint is in {} data files, only one (data-00000-of-00001) can be read: save it again "
                "with tf.train.Saver(sharded=False)",
                header.shards);
  }
  if (header.endianness != 0) source.fail(offset, "the checkpoint was written on a big-endian machine: save it again");
  if (header.min_consumer > reader_version) {
    source.fail(offset, "the checkpoint needs a reader of version {}, this one has {}", header.min_consumer,
                reader_version);
  }
}

// Why an entry cannot be read as a tensor; empty if it can.
std::string reason_to_refuse(const BundleEntry& entry) {
  if (entry.sliced) return "it is saved in slices (a partitioned variable): save it unpartitioned";
  if (!dtype_from_tensorflow(entry.dtype)) {
    return fmt::format("it has the type {}; DT_FLOAT, DT_DOUBLE, DT_INT32 and DT_INT64 can be read",
                       tensorflow_type_name(entry.dtype));
  }
  return "";
}

// What the entry says must agree with itself and lie inside the data file.
void check_entry(const Source& index, const Source& data, uint64_t at, const std::string& name,
                 const BundleEntry& entry) {
  if (entry.shard != 0) index.fail(at, "{}: it is in shard {} of 1", in_quotes(name), entry.shard);
  if (entry.unknown_rank) index.fail(at, "{}: its shape is unknown", in_quotes(name));
  if (entry.offset < 0 || entry.size < 0) {
    index.fail(at, "{}: offset {} and size {} must not be negative", in_quotes(name), entry.offset, entry.size);
  }
  const auto expected = checked_byte_count(entry.shape, dtype_size(*dtype_from_tensorflow(entry.dtype)));
  if (!expected) index.fail(at, "{}: its shape has a negative length or leaves 64 bits", in_quotes(name));
  if (*expected != static_cast<uint64_t>(entry.size)) {
    index.fail(at, "{}: its type and shape need {} bytes, the entry says {}", in_quotes(name), *expected, entry.size);
  }
  const uint64_t end = static_cast<uint64_t>(entry.offset) + *expected;  // both are below 2^63
  if (end > data.size()) {
    data.fail(data.size(),
              "{} ends at byte {} according to '{}', but the file has {} bytes: cut short, or not the data "
              "of this index",
              in_quotes(name), end, index.name(), data.size());
  }
}

}  // namespace

TfBundle::TfBundle(const std::string& prefix) : TfBundle(open_source(prefix + ".index"), open_data(prefix)) {}

TfBundle::TfBundle(std::shared_ptr<const Source> index, std::shared_ptr<const Source> data)
    : index_(std::move(index)), data_(std::move(data)) {
  bool first = true;
  read_sstable(*index_, [&](const std::string& key, std::span<const std::byte> value, uint64_t offset) {
    if (first != key.empty()) index_->fail(offset, "the header (an entry with an empty key) must be the first entry");
    if (first)
      check_header(*index_, offset, parse_bundle_header(index_->name(), offset, value));
    else
      add_entry(key, value, offset);
    first = false;
  });
  if (first) index_->fail(0, "the table is empty: a checkpoint has at least a header");
}

void TfBundle::add_entry(const std::string& name, std::span<const std::byte> value, uint64_t offset) {
  BundleEntry entry = parse_bundle_entry(index_->name(), offset, value);
  if (std::string reason = reason_to_refuse(entry); !reason.empty()) {
    refused_.emplace(name, std::move(reason));
    return;
  }
  check_entry(*index_, *data_, offset, name, entry);
  tensors_[name] = {*dtype_from_tensorflow(entry.dtype), std::move(entry.shape), static_cast<uint64_t>(entry.offset),
                    static_cast<uint64_t>(entry.size), entry.masked_crc};
  names_.push_back(name);
}

const TfTensorInfo& TfBundle::info(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  if (const auto reason = refused_.find(name); reason != refused_.end()) {
    fail(ErrorKind::data, "'{}': {} cannot be read: {}", index_->name(), in_quotes(name), reason->second);
  }
  fail_missing(index_->name(), name, names_);
}

Array TfBundle::read(const std::string& name) const {
  const TfTensorInfo& tensor = info(name);
  Array array = array_of_file(data_->name(), tensor.dtype, tensor.shape);
  data_->read(tensor.offset, array.bytes());
  const uint32_t found = masked_crc32c(as_text(array.bytes()));
  if (found != tensor.masked_crc) {
    data_->fail(tensor.offset,
                "the checksum of {} is {:08x}, expected {:08x}: the file is damaged, or not the data of "
                "this index",
                in_quotes(name), found, tensor.masked_crc);
  }
  return array;
}

}  // namespace convssm::io
