// Records `verdict/<issue key>/<event id>` and `note/<id>`: what people say of issues. The router only says
// what is wrong with one: they hold nothing back, and who shows them reads the topic itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fields/issue_feedback.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/suppress/controls.h"

namespace tocsin::routing {

/// Says what is wrong with a record, and keeps nothing.
class FeedbackRecords : public ControlRecords {
 public:
  core::Status apply(std::string_view id, std::optional<std::string_view> value,
                     core::WallTime /*now*/) final {
    if (!value) return core::ok();
    const auto key = key_of(*value);
    if (!key) return key.error();
    if (*key != id)
      return core::invalid_argument("its issue and event, id, or run, are not its key's");
    return core::ok();
  }
  void forget(core::WallTime /*now*/) final {}
  void count(Stats& /*stats*/, core::WallTime /*now*/) const final {}
  core::Status restore(std::string_view /*id*/, std::string_view /*value*/) final {
    return core::ok();
  }
  void take(std::vector<StateRecord>& /*out*/) final {}
  void snapshot(std::vector<StateRecord>& /*out*/) const final {}

 private:
  /// What stands behind the prefix of its key. invalid_argument: it is no such record.
  [[nodiscard]] virtual core::Result<std::string> key_of(std::string_view json) const = 0;
};

class VerdictRecords final : public FeedbackRecords {
  [[nodiscard]] core::Result<std::string> key_of(std::string_view json) const override {
    const auto verdict = core::read_issue_verdict(json);
    if (!verdict) return verdict.error();
    return verdict->of.issue + "/" + verdict->of.event_id;
  }
};

class NoteRecords final : public FeedbackRecords {
  [[nodiscard]] core::Result<std::string> key_of(std::string_view json) const override {
    auto note = core::read_issue_note(json);
    if (!note) return note.error();
    return std::move(note->id);
  }
};

}  // namespace tocsin::routing
