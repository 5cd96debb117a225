// Records `view/<id>`: curves that somebody has chosen for a job. The router only says what is wrong with one.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/fields/chart_view.h"
#include "core/result.h"
#include "routing/suppress/feedback_records.h"

namespace tocsin::routing {

class ViewRecords final : public FeedbackRecords {
  [[nodiscard]] core::Result<std::string> key_of(std::string_view json) const override {
    auto view = core::read_chart_view(json);
    if (!view) return view.error();
    return std::move(view->id);
  }
};

}  // namespace tocsin::routing
