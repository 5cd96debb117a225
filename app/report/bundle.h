// A report as a folder of files, laid out as Amazon SageMaker Debugger lays out its own.
#pragma once

#include <string>
#include <vector>

#include "app/report/notebook.h"
#include "app/report/page.h"
#include "app/report/run_report.h"
#include "core/result.h"

namespace tocsin::app::report {

struct BundleFile {
  std::string path;  // within the bundle, with '/'
  std::string text;
};

/// profiler-output/: the page, the notebook, and a document for each rule that the original knows. CreateXgboostReport/: the same of a
/// boosting, where the run is one.
std::vector<BundleFile> bundle_of(const RunReport& report, const Page& page,
                                  const NotebookSource& source);
/// Makes the folders. Documents of rules that an earlier bundle left there are taken out. unavailable: one cannot be written, and why.
core::Status write_bundle(const std::string& folder, const std::vector<BundleFile>& files);

}  // namespace tocsin::app::report
