// Damaged and hostile .pth files, one kind per line, each with the reason that must be given. Nothing of a file is ever
// executed; what could be is refused by name.
#include <gtest/gtest.h>

#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/torch_file.h"
#include "malformed.h"
#include "pickle_parts.h"
#include "samples.h"

namespace convssm::io {
namespace {

void read_all(const std::shared_ptr<const Source>& source) {
  const TorchFile file(source);
  for (const std::string& name : file.names()) EXPECT_EQ(file.read(name).shape(), file.info(name).shape);
}

const std::string storage = storage_of("FloatStorage", "0", 4);
const std::string tensor = tensor_of(storage, 0, {4}, {1});
const std::string ordered_dict = global_of("collections", "OrderedDict");
const std::string rebuild = global_of("torch._utils", "_rebuild_tensor_v2");

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

Malformed raw(const std::string& kind, const std::string& pickle, const std::string& reason) {
  return {kind, torch_zip(pickle), reason};
}

Malformed program(const std::string& kind, const std::string& text, const std::string& reason) {
  return raw(kind, pickle_of(text), reason);
}

Malformed value(const std::string& kind, const std::string& text, const std::string& reason) {
  return raw(kind, dict_of(text), reason);
}

Malformed archive(const std::string& kind, const ZipContent& content, const std::string& reason) {
  return {kind, zip_of(content), reason};
}

TEST(TorchFile, PiecesAreRefused) {
  expect_prefixes_refused(read_text(data_path("torch_views.pth")), read_all);
  expect_prefixes_refused(torch_zip(dict_of(tensor)), read_all);
}

TEST(TorchFile, DamageIsSurvived) {
  expect_damage_survived(read_text(data_path("torch_views.pth")), read_all);
  expect_damage_survived(torch_zip(dict_of(tensor)), read_all);
}

TEST(TorchFile, PiecesAndDamageOfThePickleAreSurvived) {
  const std::string good = dict_of(tensor);
  for (size_t length = 0; length < good.size(); ++length) {
    const std::string bytes = torch_zip(good.substr(0, length));
    EXPECT_THROW(read_all(memory_source("beginning", as_bytes(bytes))), FormatError) << length << " bytes";
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string pickle = good;
      pickle[i] = static_cast<char>(byte);
      const std::string bytes = torch_zip(pickle);
      try {
        read_all(memory_source("damaged", as_bytes(bytes)));
      } catch (const FormatError&) {
      }
    }
  }
}

TEST(TorchFile, AFlippedByteIsFound) {
  const std::string good = torch_zip(dict_of(tensor));
  for (const std::string part : {"storage", "0123456789abcdef"}) {
    std::string bytes = good;
    bytes[bytes.find(part) + 3] ^= 4;
    expect_refused({part, bytes, "the checksum is"}, read_all);
  }
}

TEST(TorchFile, HostilePickles) {
  const std::string command = text_of("touch /tmp/executed") + "\x85";
  const std::string stack_global = "\x8c\x05posix\x8c\x06system\x93";
  for (const Malformed& file : {
           program("os.system", global_of("os", "system") + command + "R",
                   "byte 2: GLOBAL (0x63): 'os.system' is not part of a state dict"),
           program("posix.system by STACK_GLOBAL", stack_global + command + "R",
                   "byte 17: STACK_GLOBAL (0x93): 'posix.system' is not part"),
           program("eval", global_of("builtins", "eval") + command + "R", "'builtins.eval'"),
           program("getattr of torch", global_of("torch", "load") + command + "R", "'torch.load'"),
           program("a longer name", global_of("torch", "FloatStorage.x") + command + "R", "'torch.FloatStorage.x'"),
           program("dots in the module", global_of("torch.FloatStorage", "x") + command + "R", "FloatStorage.x'"),
           program("hidden in the metadata",
                   ordered_dict + ")R}" + text_of("_metadata") + global_of("os", "system") + "sb", "'os.system'"),
           program("INST", "(" + text_of("ls") + "ios\nsystem\n", "INST (0x69): 'os.system'"),
           program("OBJ", "(" + ordered_dict + "o", "OBJ (0x6f): 'collections.OrderedDict'"),
           program("NEWOBJ", ordered_dict + ")\x81", "NEWOBJ (0x81): 'collections.OrderedDict'"),
           program("NEWOBJ_EX", ordered_dict + ")}\x92", "NEWOBJ_EX (0x92): 'collections.OrderedDict'"),
           program("NEWOBJ of nothing", ")\x81", "NEWOBJ (0x81): 'an unknown class'"),
           program("EXT1", "\x82\x01", "EXT1 (0x82): this opcode"),
           program("PERSID", "Pid\n", "PERSID (0x50): this opcode"),
           program("unknown opcode", "\xff", "unknown opcode (0xff)"),
           program("call of a storage type", global_of("torch", "FloatStorage") + ")R",
                   "REDUCE (0x52): 'torch.FloatStorage'"),
           program("call of a text", text_of("os.system") + ")R", "cannot call the text 'os.system'"),
           program("call of a dict", "})R", "cannot call a dict of 0"),
           program("arguments as a list", ordered_dict + "]R", "must be a tuple, found a list of 0"),
           program("OrderedDict with arguments", ordered_dict + "]\x85R", "called with 1 arguments"),
           program("BUILD of a tensor", tensor + "}b",
                   "sets attributes of a call of 'torch._utils._rebuild_tensor_v2'"),
           program("BUILD of a plain dict", "}}b", "sets attributes of a dict"),
           program("BUILD of a name", ordered_dict + "}b", "sets attributes of the name"),
           program("name without end", "c" + std::string(1000, 'a'), "a name of more than 200 bytes"),
           program("binary name", global_of("\x1b[2J\xff", "x"), "'\\x1b[2J\\xff.x'"),
           program("long name on the stack", text_of(std::string(1000, 'a')) + text_of("b") + "\x93", "STACK_GLOBAL"),
           program("STACK_GLOBAL of numbers", "K\1K\2\x93", "expected two texts"),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(TorchFile, MalformedPickles) {
  for (const Malformed& file : {
           raw("empty", "", "does not begin with 0x80"),
           raw("protocol 0", "(dp0\n.", "does not begin with 0x80"),
           raw("protocol 1", "\x80\x01}.", "protocol 1, supported are 2 to 5"),
           raw("protocol 6", "\x80\x06}.", "protocol 6"),
           raw("no end", "\x80\x02}", "an opcode of the pickle needs 1 bytes"),
           raw("bytes after the end", pickle_of("}") + "x", "1 bytes follow the end"),
           program("nothing", "", "needs more values than the stack has"),
           program("two values", "}}", "values are left on the stack"),
           program("an open mark", "}(", "STOP"),
           program("a mark below", "(}", "values are left on the stack"),
           program("TUPLE without mark", "}t", "there is no mark"),
           program("APPENDS below a mark", "(((e", "needs more values"),
           program("APPEND to a dict", "}Na", "expected a list to append to, found a dict"),
           program("SETITEM of a list", "]NNs", "expected a dict to set items of, found a list"),
           program("odd SETITEMS", "}(Nu", "1 keys and values"),
           program("TUPLE3 of two", "NN\x87", "needs more values"),
           program("memo out of range", "h\x05", "BINGET (0x68): the memo has no value 5"),
           program("memo never set", "}r" + number(9, 4) + "h\x08", "the memo has no value 8"),
           program("memo of 2^32-1", "}r" + number(UINT32_MAX, 4), "above every number that the memo can have"),
           program("long memo out of range", "j" + number(UINT32_MAX, 4), "the memo has no value 4294967295"),
           program("put of nothing", "q" + number(0, 1), "needs more values"),
           program("text over the pickle", "X" + number(UINT32_MAX, 4), "a text needs 4294967295 bytes"),
           program("text of 2^64-1", "\x8d" + number(UINT64_MAX, 8), "a text needs 18446744073709551615 bytes"),
           program("number of 10 bytes", "\x8a\x0a" + std::string(10, 'x'), "a number of 10 bytes"),
           program("deep marks", std::string(100000, '('), "nested more than 100 deep"),
           program("deep tuples", "N" + std::string(100000, '\x85'), "nested more than 100 deep"),
           program("deep lists", repeat("]", 200) + repeat("a", 199), "nested more than 100 deep"),
           program("many values", std::string((2 << 20) + 1, 'N'), "more than 2097152 values"),
           program("LIST", "(l", "LIST (0x6c): this opcode"),
       }) {
    expect_refused(file, read_all);
  }
}

// Tuples that hold the one before twice are 2^n values if written out; here they stay n.
TEST(TorchFile, SharedValuesCostNothing) {
  std::string tuples = ")q" + number(0, 1);
  for (int i = 0; i < 90; ++i) tuples += "h" + number(i, 1) + "h" + number(i, 1) + "\x86q" + number(i + 1, 1);
  const std::string bytes =
      torch_zip(pickle_of("}(" + text_of("bomb") + "(" + tuples + "t" + text_of("w") + tensor + "u"));
  EXPECT_EQ(TorchFile(memory_source("shared", as_bytes(bytes))).names(), std::vector<std::string>{"w"});
  std::string list = "]q" + number(0, 1) + "h" + number(0, 1) + "a";  // a list that holds itself
  const std::string cyclic = torch_zip(pickle_of("}(" + text_of("x") + list + text_of("w") + tensor + "u"));
  EXPECT_EQ(TorchFile(memory_source("cyclic", as_bytes(cyclic))).names(), std::vector<std::string>{"w"});
}

// A large dict that is there many times is searched once: 10^10 steps otherwise.
TEST(TorchFile, SharedDictsAreSearchedOnce) {
  const std::string dict = "}q" + number(0, 1) + "(" + std::string(200000, 'N') + "u";
  const std::string bytes =
      torch_zip(pickle_of("}(N" + dict + repeat("Nh" + number(0, 1), 100000) + text_of("w") + tensor + "u"));
  EXPECT_EQ(TorchFile(memory_source("shared", as_bytes(bytes))).names(), std::vector<std::string>{"w"});
}

TEST(TorchFile, OneDictUnderTwoKeys) {
  const std::string model = "}q" + number(0, 1) + text_of("w") + tensor + "s";
  const std::string again = text_of("state_dict") + "h" + number(0, 1);
  const std::string other = "}" + text_of("v") + tensor + "s";
  const std::string bytes =
      torch_zip(pickle_of("}(" + text_of("model") + model + text_of("ema") + other + again + "u"));
  EXPECT_EQ(TorchFile(memory_source("twice", as_bytes(bytes))).names(), std::vector<std::string>{"w"});
}

TEST(TorchFile, MalformedTensors) {
  const auto view = [](int64_t offset, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
    return tensor_of(storage, offset, shape, strides);
  };
  const auto id = [](const std::string& content) { return tensor_of("(" + content + "tQ", 0, {4}, {1}); };
  const std::string parts = global_of("torch", "FloatStorage") + text_of("0") + text_of("cpu");
  const std::string parameter = global_of("torch._utils", "_rebuild_parameter");
  for (const Malformed& file : {
           program("a tensor alone", tensor, "expected a dict of names and tensors, found a call"),
           program("a list", "]", "expected a dict of names and tensors, found a list"),
           program("a dict without tensors", "}NNs", "there are no tensors in a dict of 1"),
           program("a number as name", "}K\1" + tensor + "s", "expected the name of a tensor, found the number 1"),
           program("a name twice", "}(" + text_of("w") + tensor + text_of("w") + tensor + "u",
                   "the name is there twice"),
           program("a name that is not UTF-8", "}" + text_of("\xff") + tensor + "s", "'\\xff' is not UTF-8"),
           value("too few values", rebuild + ")R", "a tensor needs 4 values at least"),
           value("no storage", tensor_of("N", 0, {4}, {1}), "expected the storage of a tensor, found None"),
           value("id is a text", tensor_of(text_of("0") + "Q", 0, {4}, {1}), "expected the tuple of a storage"),
           value("id of 4 values", id(text_of("storage") + parts), "found 4"),
           value("id of another kind", id(text_of("module") + parts + "K\4"),
                 "expected 'storage', found the text 'module'"),
           value("id without a type", id(text_of("storage") + "N" + text_of("0") + text_of("cpu") + "K\4"),
                 "expected the type of a storage, found None"),
           value("function as type", id(text_of("storage") + rebuild + text_of("0") + text_of("cpu") + "K\4"),
                 "expected the type of a storage, found the name"),
           value("number as key",
                 id(text_of("storage") + global_of("torch", "FloatStorage") + std::string("K\0", 2) + text_of("cpu") +
                    "K\4"),
                 "expected the key of a storage"),
           value("missing storage", tensor_of(storage_of("FloatStorage", "1", 4), 0, {4}, {1}),
                 "'w': its storage 'a/data/1' is not in the archive"),
           value("long key of a storage", tensor_of(storage_of("FloatStorage", std::string(65, '0'), 4), 0, {4}, {1}),
                 "of a storage has more than 64 bytes"),
           value("storage outside", tensor_of(storage_of("FloatStorage", "../version", 4), 0, {4}, {1}),
                 "is not in the archive"),
           value("storage too small", tensor_of(storage_of("FloatStorage", "0", 5), 0, {4}, {1}),
                 "has 16 bytes, expected 5 elements of f32"),
           value("storage of another type", tensor_of(storage_of("DoubleStorage", "0", 4), 0, {4}, {1}),
                 "has 16 bytes, expected 4 elements of f64"),
           value("storage of 2^62", tensor_of(storage_of("FloatStorage", "0", int64_t{1} << 62), 0, {4}, {1}),
                 "has 16 bytes"),
           value("negative storage", tensor_of(storage_of("FloatStorage", "0", -4), 0, {4}, {1}),
                 "a storage of -4 elements"),
           value("negative stride", view(3, {4}, {-1}), "a stride must not be negative"),
           value("negative length", view(0, {-4}, {1}), "negative length"),
           value("negative offset", view(-1, {4}, {1}), "offset -1 in the storage is negative"),
           value("one stride", view(0, {2, 2}, {1}), "shape [2, 2] and strides [1] differ"),
           value("too long", view(0, {5}, {1}), "leaves its storage of 4 elements"),
           value("offset too large", view(1, {4}, {1}), "from element 1 leaves its storage"),
           value("offset of 2^63-1", view(INT64_MAX, {2}, {1}), "leaves its storage"),
           value("stride too large", view(0, {2}, {4}), "leaves its storage"),
           value("stride of 2^63-1", view(0, {3}, {INT64_MAX}), "leaves its storage"),
           value("lengths overflow", view(0, {INT64_MAX, 4}, {0, 0}), "leaves 64 bits"),
           value("repeats one element", view(0, {1 << 30}, {0}), "repeats the 4 elements of its storage"),
           value("POP", tensor + "0", "POP (0x30): this opcode"),
           value("17 dimensions", view(0, std::vector<int64_t>(17, 1), std::vector<int64_t>(17, 1)),
                 "a tensor of 17 dimensions"),
           value("parameter of nothing", parameter + ")R", "a parameter without a tensor"),
           value("parameter of None", parameter + "N\x85R", "expected the tensor of a parameter, found None"),
           value("parameter of a parameter", parameter + parameter + tensor + "\x85R\x85R",
                 "expected a tensor, found a call"),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(TorchFile, OtherArchives) {
  const std::string pickle = dict_of(tensor);
  const std::pair<std::string, std::string> data = {"a/data.pkl", pickle}, bytes = {"a/data/0", std::string(16, 'x')};
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  for (const Malformed& file : {
           Malformed{"empty", "", "at least 22 bytes"},
           Malformed{"legacy", read_text(data_path("torch_legacy.pth")),
                     "torch.save(torch.load('old.pth', map_location='cpu'), 'new.pth')"},
           Malformed{"tar", tar, "a tar file, the format of PyTorch before 1.6"},
           Malformed{"plain pickle", pickle, "a plain pickle, not a zip file of torch.save"},
           Malformed{"TorchScript", read_text(data_path("torch_script.pt")), "TorchScript program (torch.jit.save)"},
           Malformed{"one tensor", read_text(data_path("torch_tensor.pth")), "expected a dict of names and tensors"},
           Malformed{"two models", read_text(data_path("torch_two_models.pth")),
                     "several dicts hold tensors: 'model', 'ema'"},
           Malformed{"compressed", zip_of({data, bytes}, true),
                     "'a/data.pkl' is compressed, which torch.save never does"},
           archive("no pickle", {bytes}, "no member '.../data.pkl'"),
           archive("pickle at the top", {{"data.pkl", pickle}, bytes}, "no member '.../data.pkl'"),
           archive("two pickles", {data, {"b/data.pkl", pickle}, bytes}, "two members are named data.pkl"),
           archive("big-endian", {data, bytes, {"a/byteorder", "big"}}, "the byte order is 'big'"),
           archive("no byte order", {data, bytes, {"a/byteorder", ""}}, "the byte order is ''"),
           archive("no storage", {data}, "'a/data/0' is not in the archive"),
           archive("storage of another archive", {data, {"b/data/0", std::string(16, 'x')}}, "is not in the archive"),
       }) {
    expect_refused(file, read_all);
  }
}

}  // namespace
}  // namespace convssm::io
