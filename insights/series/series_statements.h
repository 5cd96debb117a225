// What the writer of series says to its database. Internal to series.
#pragma once

#include "insights/series/series_writer.h"
#include "insights/store/database.h"

namespace tocsin::insights {

struct SeriesWriter::Statements {
  StoreStatement put_position, get_run, put_run, hear_run, get_segment, put_segment, get_sequence,
      put_sequence, put_name, get_order, get_family, put_family, keep_family, get_pieces,
      gone_pieces, put_piece, put_chunk, get_block, put_block, put_link, put_node, put_placed,
      get_open, put_open, put_histogram, get_frames, put_frames, put_lost, old_chunks, old_piece,
      old_blocks;
};

}  // namespace tocsin::insights
