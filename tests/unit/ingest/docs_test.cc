// What the pages show is what the program reads: the examples of docs/wire.md and docs/events.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/event_fixture.h"
#include "tests/unit/ingest/frame_fixture.h"

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
  const auto failure =
      decoder.decode(json, 0, [&](const core::FrameView& frame, const core::FrameBody&) {
        if (frame.header().kind == core::FrameKind::scalar) rows += frame.rows();
      });
  EXPECT_FALSE(failure) << failure->detail;
  EXPECT_EQ(rows, 1u);
}

TEST(WirePage, ItsHexadecimalFrameIsTheOneThatIsWritten) {
  std::string text = block_with("wire-vectors.md", "5443534e");
  std::erase(text, '\n');
  EXPECT_EQ(text, hex(step_end_frame()));
}

TEST(WirePage, ItsLeastIssueIsAccepted) {
  const auto event = decode_structured_event(block_with("wire.md", "disk_full"));
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(std::get<core::Issue>(event->event).rule, "disk_full");
}

TEST(EventsPage, ItsTablesAreWhatTheProgramPrints) {
  std::ifstream file("docs/events.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string tables = event_tables();
  std::size_t found = 0;
  for (std::size_t at = 0; (at = tables.find("## ", at)) != tables.npos; ++found) {
    const std::size_t name = at + 3;
    const std::size_t table = tables.find("| Field", name);
    const std::size_t end = std::min(tables.find("\n\n", table), tables.size());
    const std::string event = tables.substr(name, tables.find('\n', name) - name);
    EXPECT_NE(page.find("<!-- fields:begin " + event + " -->\n\n" +
                        tables.substr(table, end - table) + "\n\n<!-- fields:end -->"),
              page.npos)
        << event << ": run `make docs`";
    at = end;
  }
  EXPECT_EQ(found, 6u);
}

/// The paths of an object's entries that a schema names, and those that it does not.
void check_against(const nlohmann::json& schema, const nlohmann::json& value,
                   const std::string& path) {
  const nlohmann::json* inner = &schema;
  if (schema.contains("anyOf")) inner = &schema["anyOf"].back();  // the first is null
  if (value.is_array() && inner->contains("items")) {
    for (const auto& item : value) check_against((*inner)["items"], item, path + "[]");
  }
  if (!value.is_object() || !inner->contains("properties")) return;
  for (const auto& [key, entry] : value.items()) {
    const auto& properties = (*inner)["properties"];
    if (inner->contains("additionalProperties") && !properties.contains(key)) continue;
    ASSERT_TRUE(properties.contains(key)) << path << "." << key;
    check_against(properties[key], entry, path + "." + key);
  }
}

TEST(EventSchemas, NameEveryFieldThatAnEventWrites) {
  const auto schemas = nlohmann::json::parse(event_schemas())["definitions"];
  const auto check = [&](const char* name, const core::OutRecord& record) {
    ASSERT_TRUE(schemas.contains(name)) << name;
    check_against(schemas[name], nlohmann::json::parse(*record.value), name);
  };
  check("issue.v1", encode_issue(full_issue()));
  check("job.v1", encode_job(full_job(), "c1"));
  check("rule.v1", encode_rule_status(full_rule_status(), "c1"));
  check("command.v1", encode_command(stop_command(), "/x"));
  check("ack.v1", encode_ack(full_ack(), "c1"));
  check("delivery.v1", encode_delivery(full_delivery(), at(), "c1"));
  EXPECT_EQ(schemas["issue.v1"]["required"], (nlohmann::json{"status"}));
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
