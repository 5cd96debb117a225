// What routes about series of a run share: the run that a path names, and what is asked of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

std::int64_t number_in(const UrlQuery& query, std::string_view name, std::int64_t otherwise);

/// Its series, and its uid; nullptr: `refusal` says why.
std::unique_ptr<insights::SeriesReader> series_of_run(ApiDesk& desk, const ApiCall& call,
                                                      std::string& uid, HttpAnswer& refusal);

/// The field that an error of ours begins with is the one that was wrong.
HttpAnswer refused_ask(const core::Error& error);

/// run, name, worker, mode.
std::vector<ApiParameter> selecting_parameters();
ApiParameter integer_parameter(std::string name, std::string meaning, std::int64_t least,
                               std::int64_t most);
ApiParameter statistic_parameter();

}  // namespace tocsin::app
