// Forecasts as files of fields (data/field_writer.h). Several futures of a clip are one file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convssm/generate/frame_sink.h"

namespace convssm::generate {

// Sinks for the futures of one clip, which are written side by side: the file is complete when all of them are closed.
std::vector<std::unique_ptr<FrameSink>> open_grid_sinks(const std::string& path, const data::FrameFormat& format,
                                                        const SinkOptions& options, int64_t members);

}  // namespace convssm::generate
