// Door of the room `ingest`: getting records in and out (transport.h: Kafka, journal) and
// the bytes they are made of (frames, JSON scalars, events, dead letters). Rooms of the middle row
// never include it; app joins.
#pragma once

#include "ingest/events/event_schema.h"  // event_schemas, event_tables
#include "ingest/events/events.h"        // encode_issue …, decode_event, decode_command …
#include "ingest/events/outline.h"       // what tells an issue that is only said again
#include "ingest/group_positions.h"      // where a consumer group stands
#include "ingest/journal/salvage.h"      // check_journal, salvage_journal
#include "ingest/transport.h"            // sources and publishers
#include "ingest/wire/crc32c.h"          // crc32c
#include "ingest/wire/frame_body.h"      // decode_body
#include "ingest/wire/frame_decoder.h"   // decode_frame, for_each_dictionary_entry
#include "ingest/wire/frame_writer.h"    // FrameWriter
#include "ingest/wire/json_scalars.h"    // JsonScalarDecoder, decode_telemetry, dead_letter
#include "ingest/wire/lifecycle.h"       // encode_lifecycle, parse_lifecycle
#include "ingest/wire/tensor_chunk.h"    // tensor_chunk, TensorAssembly
