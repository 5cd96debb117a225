#include "app/api/series_asking.h"

#include <charconv>
#include <utility>

#include "app/serve/problem.h"
#include "core/visible_text.h"

namespace tocsin::app {

std::int64_t number_in(const UrlQuery& query, std::string_view name, std::int64_t otherwise) {
  const auto text = query.value(name);
  if (!text) return otherwise;
  std::int64_t out = otherwise;
  std::from_chars(text->data(), text->data() + text->size(), out);
  return out;
}

std::unique_ptr<insights::SeriesReader> series_of_run(ApiDesk& desk, const ApiCall& call,
                                                      std::string& uid, HttpAnswer& refusal) {
  auto runs = desk.insights.reader();
  if (!runs) {
    refusal = problem(runs.error());
    return nullptr;
  }
  const std::string& asked = call.request.in_path.find("run")->second;
  const auto line = (*runs)->run(asked);
  if (!line) {
    const auto failed = (*runs)->failure();
    refusal =
        problem(failed ? core::Error{core::Code::not_found,
                                     "no run, or more than one, has a uid that begins with \"" +
                                         core::visible(asked, 100) + "\""}
                       : failed.error());
    return nullptr;
  }
  uid = line->uid;
  auto reader = desk.curves.reader();
  if (!reader) {
    refusal = problem(reader.error());
    return nullptr;
  }
  return std::move(*reader);
}

HttpAnswer refused_ask(const core::Error& error) {
  const std::string& text = error.message;
  return problem(400, "invalid-parameter", text, text.substr(0, text.find(':')));
}

std::vector<ApiParameter> selecting_parameters() {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  ApiParameter mode{"mode", ParameterType::choice, "mode of the steps"};
  mode.choices = {"global", "train", "eval", "predict"};
  return {run,
          {"name", ParameterType::regex, "regular expression of the whole name; all if not given"},
          {"worker", ParameterType::regex, "regular expression of the worker's whole name"},
          mode};
}

ApiParameter integer_parameter(std::string name, std::string meaning, std::int64_t least,
                               std::int64_t most) {
  ApiParameter out{std::move(name), ParameterType::integer, std::move(meaning)};
  out.least = least;
  out.most = most;
  return out;
}

ApiParameter statistic_parameter() {
  ApiParameter out{"stat", ParameterType::choice, "statistic of tensors"};
  out.choices = insights::tensor_statistics();
  return out;
}

}  // namespace tocsin::app
