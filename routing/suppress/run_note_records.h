// Records `run-note/<id>`: what is written about runs. The router only says what is wrong with one.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/fields/run_note.h"
#include "core/result.h"
#include "routing/suppress/feedback_records.h"

namespace tocsin::routing {

class RunNoteRecords final : public FeedbackRecords {
  [[nodiscard]] core::Result<std::string> key_of(std::string_view json) const override {
    auto note = core::read_run_note(json);
    if (!note) return note.error();
    return std::move(note->id);
  }
};

}  // namespace tocsin::routing
