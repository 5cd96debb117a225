// Door of insights: what happened to runs, kept for looking back, and the pages that show it.
#pragma once

#include "insights/config.h"                  // the `insights` section
#include "insights/pages/page_table.h"        // the files of the page, as the program carries them
#include "insights/series/health_query.h"     // tensors of a run at one step
#include "insights/series/heat_query.h"       // all tensors of a run over all steps
#include "insights/series/histogram_query.h"  // elements of tensors by magnitude over the steps
#include "insights/series/loop_query.h"       // the loop of a run, and its longest operations
#include "insights/series/node_health.h"      // how a node is, by the samples of its agent
#include "insights/series/node_owner.h"       // a node as the owner of its samples
#include "insights/series/rank_heat_query.h"  // one number of every rank over all steps
#include "insights/series/rank_query.h"       // what ranks spend their time on
#include "insights/series/restart_query.h"    // where later clients of workers went on
#include "insights/series/series_ages.h"      // how long what is kept
#include "insights/series/series_check.h"     // a full check of curves.db
#include "insights/series/series_query.h"     // curves of a run, at most so many points
#include "insights/series/series_reader.h"    // what is stored, unthinned
#include "insights/series/series_stats.h"     // what curves.db holds and costs
#include "insights/series/series_writer.h"    // numbers by step into the store of series
#include "insights/series/span_fold.h"        // spans of workers into the store of series
#include "insights/series/span_query.h"       // spans of a run within a time
#include "insights/series/system_fold.h"      // samples of nodes into the store of series
#include "insights/series/system_query.h"     // samples of the nodes of a run
#include "insights/series/telemetry_fold.h"   // frames into the store of series
#include "insights/series/usage_query.h"      // percentiles of what a run has used
#include "insights/store/event_reader.h"      // questions to the store
#include "insights/store/event_writer.h"      // events into the store
#include "insights/store/kept_record.h"       // a record as the store keeps it
#include "insights/store/set_aside.h"         // a file that is not gone on with
#include "insights/store/store_check.h"       // a full check of insights.db
#include "insights/store/store_hold.h"        // what keeps a store readable while none is written
#include "insights/store/store_lock.h"        // one process writes a store
