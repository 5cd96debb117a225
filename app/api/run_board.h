// The list of runs for a person: those in trouble first, filtered by words, from any place on.
#pragma once

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// GET /runs?order=trouble&q=…&offset=…&limit=…: {items, next, total, groups, as_of, current}. `next` is
/// null: whoever wants other rows says from where on.
HttpAnswer show_run_board(ApiDesk& desk, const ApiCall& call);

}  // namespace tocsin::app
