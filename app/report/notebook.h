// A report as a notebook: for each section the call of tocsin.analysis that computes it, to be run again and changed.
#pragma once

#include <string>

#include "app/report/run_report.h"

namespace tocsin::app::report {

/// Where the notebook finds the run: a directory, the address of a server, or empty: whoever runs it says so.
struct NotebookSource {
  std::string place;
  bool server = false;
};

/// nbformat 4.5, without outputs. Reads what stands beside it in `profiler-reports/`, where it is a part of a bundle.
std::string profiler_notebook(const RunReport& report, const NotebookSource& source);
/// Of a boosting. Reads `xgboost_report.json` beside it.
std::string xgboost_notebook(const RunReport& report, const NotebookSource& source);

}  // namespace tocsin::app::report
