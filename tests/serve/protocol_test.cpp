// Requests as texts, names of visitors and of hosts.
#include "convssm/serve/protocol.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support.h"

namespace convssm::serve {
namespace {

using testing::expect_error;

TEST(Protocol, ReadsRequests) {
  EXPECT_EQ(parse_request(R"({"do": "join"})").deed, Deed::join);
  EXPECT_EQ(parse_request(R"({"do": "join", "visitor": "abc"})").visitor, "abc");
  EXPECT_EQ(parse_request(R"({"do": "look"})").deed, Deed::look);
  const Request start = parse_request(R"({"do": "start", "world": 3, "seed": 18446744073709551615})");
  EXPECT_EQ(start.deed, Deed::start);
  EXPECT_EQ(start.world, 3);
  EXPECT_EQ(start.seed, 18446744073709551615u);
  const Request step = parse_request(R"({"do": "step", "action": 1, "all": true})");
  EXPECT_EQ(step.action, std::vector<double>{1});
  EXPECT_TRUE(step.all);
  EXPECT_EQ(parse_request(R"({"do": "step", "action": [0.5, -1]})").action, (std::vector<double>{0.5, -1}));
  EXPECT_TRUE(parse_request(R"({"do": "step"})").action.empty());
  EXPECT_EQ(parse_request(R"({"do": "rewind", "frames": 20})").frames, 20);
  EXPECT_EQ(parse_request(R"({"do": "branch", "count": 3})").count, 3);
  EXPECT_EQ(parse_request(R"({"do": "choose", "branch": 1})").branch, 1);
  EXPECT_EQ(parse_request(R"({"do": "keep"})").deed, Deed::keep);
  EXPECT_EQ(parse_request(R"({"do": "temperature", "value": 0.8})").value, 0.8);
  EXPECT_EQ(parse_request(R"({"do": "record", "fps": 12})").fps, 12);
  EXPECT_EQ(parse_request(R"({"do": "stop"})").deed, Deed::stop);
}

TEST(Protocol, SaysWhatIsWrongWithARequest) {
  const auto refuses = [](const std::string& text, const std::vector<std::string>& parts) {
    expect_error([&] { parse_request(text); }, parts);
  };
  refuses("", {"the request"});
  refuses("walk", {"the request"});
  refuses("{\"do\": \"look\"", {"the request"});
  refuses("[1]", {"'do'", "look"});
  refuses("{}", {"'do'"});
  refuses(R"({"do": 1})", {"'do'"});
  refuses(R"({"do": "stepp"})", {"stepp", "did you mean 'step'"});
  refuses(R"({"do": "step", "actoin": 1})", {"actoin", "action"});
  refuses(R"({"do": "look", "frames": 1})", {"frames"});
  refuses(R"({"do": "step", "action": "up"})", {"action", "number"});
  refuses(R"({"do": "rewind", "frames": 1.5})", {"frames", "whole"});
  refuses(R"({"do": "start", "seed": -1})", {"seed"});
  refuses(std::string(kLongestRequest + 1, ' '), {"4096", "4097"});
  refuses(std::string(2000, '[') + std::string(2000, ']'), {"the request"});
  refuses("{\"do\": \"\xff\xfe\"}", {"the request"});
}

TEST(Protocol, ErrorsAreAnswers) {
  const auto json = nlohmann::json::parse(error_reply(Error(ErrorKind::usage, "no \"such\" \xff thing")).bytes);
  EXPECT_EQ(json["kind"], "usage");
  EXPECT_NE(json["error"].get<std::string>().find("no \"such\""), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(error_reply(std::runtime_error("a path of this machine")).bytes)["kind"], "internal");
  EXPECT_EQ(nlohmann::json::parse(error_reply(UnknownVisitor("who?")).bytes)["kind"], "unknown visitor");
  EXPECT_EQ(error_reply(std::runtime_error("a path of this machine")).bytes.find("path"), std::string::npos);
}

TEST(Protocol, VisitorsHaveNamesThatNobodyGuesses) {
  const std::string one = new_visitor(), two = new_visitor();
  EXPECT_TRUE(is_visitor(one));
  EXPECT_NE(one, two);
  for (const char* other : {"", "abc", "../../etc/passwd", "0123456789abcdef0123456789abcdeF"}) {
    EXPECT_FALSE(is_visitor(other)) << other;
  }
}

TEST(Protocol, ANameThatSomebodyElseGaveIsNotThisMachine) {
  for (const char* own : {"127.0.0.1:8723", "127.0.0.1", "localhost:1", "[::1]:8723", "192.168.1.7:8723"}) {
    EXPECT_TRUE(is_own_host(own)) << own;
  }
  for (const char* other :
       {"", "evil.example:8723", "127.0.0.1.evil.example", "localhost.evil.example", ":8723", "["}) {
    EXPECT_FALSE(is_own_host(other)) << other;
  }
}

}  // namespace
}  // namespace convssm::serve
