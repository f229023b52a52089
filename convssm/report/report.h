// The page about a run: what a person opens to see how it goes and how good the forecasts are. One HTML file with charts,
// images and style inside, that loads nothing from elsewhere.
#pragma once

#include <string>

namespace convssm::report {

// Writes run_folder/report.html, whole or not at all, from what the folder holds; each part may be missing, still being
// written or damaged, and the page then says so:
//   config.yaml    shown as it is
//   log.jsonl      {"step":10,"loss":1.2,"lr":1e-3,...} or {"step":100,"validation":{"psnr_f01":20.1,...}} per line
//   status.json    {"state":"running"|"finished"|"stopped"|"failed","step":..,"steps":..,"seconds":..,"model":..,...}
//   metrics.json   {"protocol":{..},"horizons":[{"frames":400,"rows":[{"name":..,"psnr_f01":{"mean":..,"std":..}}]}],
//                   "curves":{"frames":[..],"psnr_f01":{"model":[..],..}}}; of several settings "settings", a list of such
//                  objects with "name" and "context", instead of "horizons" and "curves"
//   samples/       *.gif and *.png, newest first, 12 MB of them at most
// Error(io) if the folder does not exist or the page cannot be written.
void write_report(const std::string& run_folder);

}  // namespace convssm::report
