#include "app/api/report_routes.h"

#include <optional>
#include <string>
#include <utility>

#include "app/process/version.h"
#include "app/report/aftermath.h"
#include "app/report/bundle.h"
#include "app/report/curve_sections.h"
#include "app/report/gather.h"
#include "app/report/notebook.h"
#include "app/report/page.h"
#include "app/report/page_file.h"
#include "app/report/page_size.h"
#include "app/report/report_time.h"
#include "app/report/tar.h"
#include "app/serve/problem.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

struct ReportKind {
  const char* ending;
  const char* content_type;
  const char* summary;
};
constexpr ReportKind kHtmlReport{"html", "text/html; charset=utf-8",
                                 "Get the report about a run as one page without scripts"};
constexpr ReportKind kJsonReport{"json", "application/json", "Get the report about a run"};
constexpr ReportKind kMarkdownReport{"md", "text/markdown; charset=utf-8",
                                     "Get the beginning of the report about a run as Markdown"};
constexpr ReportKind kNotebookReport{"ipynb", "application/x-ipynb+json",
                                     "Get the report about a run as a notebook to run and change"};
constexpr ReportKind kBundleReport{"tar", "application/x-tar",
                                   "Get the report about a run as a bundle of files"};
constexpr std::size_t kMostOfAFolderName = 100;

/// What the store has of the newest attempt; nullopt: nothing tells of the run but messages.
/// `current`: the store has read all there is.
std::optional<report::RunReport> stored_report(const std::vector<insights::KeptRecord>& events,
                                               const std::string& source, bool current) {
  report::Gathering gathering;
  for (const auto& kept : events) gathering.apply(kept.view());
  if (gathering.attempts().empty()) return std::nullopt;
  report::RunReport out = std::prev(gathering.attempts().end())->second;
  out.source = source;
  out.judged_by = "the rules of the cluster";
  if (!current) out.store_behind = core::Duration{0};
  report::Aftermath aftermath(out);
  for (const auto& kept : events) aftermath.apply(kept.view());
  aftermath.tell(out);
  return out;
}

/// Without curves where none are kept: the report says so.
report::Section stored_curves(ApiDesk& desk, const report::RunReport& report) {
  const auto reader = desk.curves.reader();
  if (!reader) return {};
  auto section = report::curve_section(**reader, report);
  return section ? std::move(*section) : report::Section{};
}

core::Result<report::RunReport> asked_report(ApiDesk& desk, const std::string& asked) {
  auto store = desk.insights.reader();
  if (!store) return store.error();
  const auto line = (*store)->run(asked);
  auto events = line ? (*store)->events_of(line->uid) : std::vector<insights::KeptRecord>{};
  if (const auto status = (*store)->failure(); !status) return status.error();
  auto report = stored_report(events, "the server's store", desk.insights.current());
  if (!report) {
    return core::Error{core::Code::not_found,
                       "no run, or more than one, has a uid that begins with \"" +
                           core::visible(asked, 100) + "\""};
  }
  return std::move(*report);
}

/// This server, as who asks has reached it.
report::NotebookSource reached_at(const HttpRequest& request) {
  const std::string host(request.header("Host"));
  if (host.empty()) return {"", true};
  return {(request.secure ? "https://" : "http://") + host, true};
}

HttpAnswer show_report(ApiDesk& desk, const ApiCall& call, const ReportKind& kind) {
  const auto report = asked_report(desk, call.request.in_path.find("run")->second);
  if (!report) return problem(report.error());
  std::string name = report::page_name(report->run);
  name.replace(name.rfind("html"), std::string::npos, kind.ending);
  HttpAnswer out{200, {}, kind.content_type, {}};
  out.headers.emplace_back("Content-Disposition",
                           (&kind == &kBundleReport ? "attachment" : "inline") +
                               std::string("; filename=\"") + name + "\"");
  if (&kind == &kJsonReport) {
    out.body = report_json(*report) + "\n";
    return out;
  }
  if (&kind == &kNotebookReport) {
    out.body = report::profiler_notebook(*report, reached_at(call.request));
    return out;
  }
  const core::WallTime made = report::report_time();
  const report::Page page = compose(*report, stored_curves(desk, *report), version_text(), made);
  if (&kind == &kBundleReport) {
    const std::string folder = name.substr(0, name.rfind('.')).substr(0, kMostOfAFolderName);
    auto tar = tar_of(folder, bundle_of(*report, page, reached_at(call.request)), made);
    if (!tar) return problem(tar.error());
    out.body = std::move(*tar);
    return out;
  }
  if (&kind == &kMarkdownReport) {
    out.body = page_markdown(page, report::kMarkdownSections);
    return out;
  }
  out.headers.emplace_back("Content-Security-Policy", "sandbox; " + report::page_policy());
  out.body = report::page_within(page);
  return out;
}

}  // namespace

std::vector<ApiRoute> report_routes(ApiDesk& desk) {
  std::vector<ApiRoute> out;
  for (const ReportKind* kind :
       {&kHtmlReport, &kJsonReport, &kMarkdownReport, &kNotebookReport, &kBundleReport}) {
    ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
    run.in_path = true;
    ApiReply reply{200, "the report of its newest attempt", "RunReport", kind->content_type};
    if (kind == &kNotebookReport)
      reply.schema = "Notebook";
    else if (kind == &kBundleReport)
      reply.schema = "Archive";
    else if (kind != &kJsonReport)
      reply.schema = "Text";
    out.push_back({"GET",
                   "/api/v1/runs/{run}/report." + std::string(kind->ending),
                   ApiRole::viewer,
                   kind->summary,
                   [&desk, kind](const ApiCall& call) { return show_report(desk, call, *kind); },
                   {std::move(run)},
                   {},
                   {std::move(reply)}});
  }
  return out;
}

}  // namespace tocsin::app
