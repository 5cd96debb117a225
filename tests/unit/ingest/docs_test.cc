// What the pages show is what the program reads: the examples of docs/wire.md and docs/events.md.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/ingest/frame_fixture.h"
#include "tests/unit/ingest/record_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;

/// The fenced blocks of a page, without their fences. Tests run in the project's root.
std::vector<std::string> blocks_of(const std::string& page) {
  std::ifstream file("docs/" + page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> out;
  std::size_t at = 0;
  while ((at = text.find("\n```", at)) != text.npos) {
    const std::size_t start = text.find('\n', at + 1) + 1;
    const std::size_t end = text.find("\n```", start);
    if (end == text.npos) break;
    out.push_back(text.substr(start, end - start));
    at = end + 4;
  }
  return out;
}

/// The first block that holds `what`; empty when there is none.
std::string block_with(const std::string& page, std::string_view what) {
  for (const std::string& block : blocks_of(page)) {
    if (block.find(what) != block.npos) return block;
  }
  return {};
}

TEST(WirePage, ItsJsonRecordIsAccepted) {
  const std::string json = block_with("wire.md", "\"loss\"");
  ASSERT_FALSE(json.empty());
  JsonScalarDecoder decoder;
  std::size_t rows = 0;
  const auto failure = decoder.decode(json, 0, [&](const core::FrameView& frame) {
    if (frame.header().kind == core::FrameKind::scalar) rows += frame.rows();
  });
  EXPECT_FALSE(failure) << failure->detail;
  EXPECT_EQ(rows, 1u);
}

TEST(WirePage, ItsHexadecimalFrameIsTheOneThatIsWritten) {
  std::string text = block_with("wire.md", "5443534e");
  std::erase(text, '\n');
  EXPECT_EQ(text, hex(step_end_frame()));
}

TEST(WirePage, ItsLeastIssueIsAccepted) {
  const auto event = decode_structured_event(block_with("wire.md", "disk_full"));
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(std::get<core::Issue>(event->event).rule, "disk_full");
}

TEST(EventsPage, ItsIssueIsReadWholeAndWrittenAlike) {
  core::OutRecord record;
  record.topic = "issues";
  record.value = block_with("events.md", "\"evidence\"");
  record.headers = {{"ce_specversion", "1.0"},
                    {"ce_type", std::string(event_type::kIssue)},
                    {"ce_source", "/c1/rules/exploding_tensor"},
                    {"ce_id", "iss_1"}};
  const auto event = decode_event(view_of(record));
  ASSERT_TRUE(event) << event.error().message;
  const auto& issue = std::get<core::Issue>(event->event);
  EXPECT_EQ(issue.run.uid, run());
  EXPECT_EQ(issue.evidence.observed.value, 17.0);
  EXPECT_EQ(issue.evidence.data_refs.at(0).last, 8812);
  // Every key of the page is one that we write, in the same order.
  const std::string written = issue_json(issue);
  std::size_t at = 0;
  for (const char* key : {"status", "rule_version", "labels", "annotations", "expiry", "run",
                          "global_step", "evidence", "tensor", "window", "parameters", "affected",
                          "data_refs", "values", "stages"}) {
    const std::size_t found = written.find("\"" + std::string(key) + "\":", at);
    ASSERT_NE(found, written.npos) << key;
    at = found;
  }
}

}  // namespace
}  // namespace tocsin::ingest
