#include "app/report/bundle.h"

#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "app/report/original_rules.h"
#include "app/report/page_file.h"
#include "app/report/page_size.h"
#include "app/report/sections.h"

namespace tocsin::app::report {
namespace {

constexpr const char* kRuleFolder = "profiler-output/profiler-reports/";

/// The name of a rule as a file's.
std::string file_stem(std::string name) {
  for (char& one : name) {
    const auto byte = static_cast<unsigned char>(one);
    if (byte >= 0x80U || (std::isalnum(byte) == 0 && one != '-' && one != '_')) one = '_';
  }
  return name;
}

/// The sections of the boosting alone.
Page xgboost_page(const Page& whole, const core::ValueMap& summary) {
  Page out = whole;
  out.title =
      "XGBoost training" +
      (whole.title.find(':') == std::string::npos ? "" : whole.title.substr(whole.title.find(':')));
  out.sections = xgboost_sections(summary);
  std::erase_if(out.sections, [](const Section& one) { return one.blocks.empty(); });
  out.json = core::to_json(summary);
  return out;
}

}  // namespace

std::vector<BundleFile> bundle_of(const RunReport& report, const Page& page,
                                  const NotebookSource& source) {
  std::vector<BundleFile> out{
      {"profiler-output/profiler-report.html", page_within(page)},
      {"profiler-output/profiler-report.ipynb", profiler_notebook(report, source)}};
  for (const auto& [name, document] : original_reports(report)) {
    out.push_back({kRuleFolder + file_stem(name) + ".json", core::to_json(document) + "\n"});
  }
  const auto* boosting = summary_of(report, "create_xgboost_report");
  if (boosting == nullptr || !is_boosting(*boosting)) return out;
  out.push_back(
      {"CreateXgboostReport/xgboost_report.html", page_within(xgboost_page(page, *boosting))});
  out.push_back({"CreateXgboostReport/xgboost_report.ipynb", xgboost_notebook(report, source)});
  out.push_back({"CreateXgboostReport/xgboost_report.json", core::to_json(*boosting) + "\n"});
  return out;
}

core::Status write_bundle(const std::string& folder, const std::vector<BundleFile>& files) {
  const std::filesystem::path root(folder);
  std::set<std::filesystem::path> names;
  std::error_code error;
  for (const BundleFile& file : files) {
    const std::filesystem::path path = root / file.path;
    names.insert(path);
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return core::Error{core::Code::unavailable,
                         path.parent_path().string() + " cannot be made: " + error.message()};
    }
    if (auto done = write_page(path.string(), file.text); !done) return done;
  }
  for (const auto& entry : std::filesystem::directory_iterator(root / kRuleFolder, error)) {
    const bool document = entry.path().extension() == ".json";
    if (document && !names.contains(entry.path())) std::filesystem::remove(entry.path(), error);
  }
  return core::ok();
}

}  // namespace tocsin::app::report
