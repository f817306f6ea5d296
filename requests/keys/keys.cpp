#include "requests/keys/keys.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

struct Member;

/// What a schema says of one place in a document.
struct Place {
  std::string_view type, help;
  Presence presence = Presence::kAlways;
  std::vector<Member> members;  // in the order of the table
  std::unique_ptr<Place> items;
  std::unique_ptr<Place> any_name;
};

struct Member {
  std::string_view name;
  Place place;
};

Place& member(Place& of, std::string_view name) {
  if (name == "*") {
    if (!of.any_name) of.any_name = std::make_unique<Place>();
    return *of.any_name;
  }
  for (Member& known : of.members) {
    if (known.name == name) return known.place;
  }
  of.members.push_back({.name = name, .place = {}});
  return of.members.back().place;
}

/// `in_part`: the key is one of several that an object need not have.
void add(Place& root, const ResultKey& key, bool in_part = false) {
  Place* at = &root;
  Place* named = at;  // the last that has a name: lists are described, not their items
  for (std::string_view rest = key.path; !rest.empty();) {
    const std::string_view step = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), step.size() + 1));
    const std::string_view name = step.substr(0, step.find('['));
    at = named = &member(*at, name);
    for (std::size_t lists = (step.size() - name.size()) / 2; lists > 0; --lists) {
      if (!at->items) at->items = std::make_unique<Place>();
      at = at->items.get();
    }
  }
  for (const ResultKey& below : key.members) add(*at, below, key.presence == Presence::kInPart);
  if (key.path.empty()) return;
  at->type = key.type;
  named->help = key.help;
  named->presence = in_part ? Presence::kSometimes : key.presence;
}

io::Document type_of(const Place& place) {
  if (place.items) return "array";
  if (place.type.empty()) return "object";
  if (place.type == "value") {
    return io::Document::list({"number", "string", "boolean", "object", "array", "null"});
  }
  if (!place.type.ends_with('?')) return place.type;
  return io::Document::list({place.type.substr(0, place.type.size() - 1), "null"});
}

io::Document describe(const Place& place) {
  io::Document said = {{"type", type_of(place)}};
  if (!place.help.empty()) said["description"] = place.help;
  if (place.items) said["items"] = describe(*place.items);
  if (!place.members.empty()) {
    io::Document properties, required = io::Document::list();
    for (const auto& [name, below] : place.members) {
      properties[name] = describe(below);
      if (below.presence == Presence::kAlways) required.push_back(name);
    }
    said["properties"] = properties;
    said["required"] = required;
    said["additionalProperties"] = false;
  }
  if (place.any_name) said["additionalProperties"] = describe(*place.any_name);
  return said;
}

}  // namespace

std::span<const ResultForm> result_forms() {
  static const std::array forms = {kPlanForm,    kBandwidthForm, kBroadcastForm, kSimulateForm,
                                   kChakraForm,  kSweepForm,     kImportForm,    kReplayForm,
                                   kProfileForm, kErrorForm};
  return forms;
}

io::Document schema(const ResultForm& form) {
  Place root;
  for (const ResultKey& key : form.keys) add(root, key);
  io::Document made = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                       {"title", form.title}};
  made.update(form.schema != nullptr ? form.schema() : describe(root));
  made["description"] = form.when;
  return made;
}

io::Document result_schemas() {
  io::Document all = io::Document::object();
  for (const ResultForm& form : result_forms()) {
    io::Document& forms = all[form.of];
    if (forms.is_null()) forms = io::Document::list();
    forms.push_back(schema(form));
  }
  return all;
}

}  // namespace hipress::requests
