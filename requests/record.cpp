#include "requests/record.hpp"

namespace hipress::requests {

void Record::describe(io::Document& schema, std::string_view help) {
  io::Document described = {{"type", *schema.find("type")}, {"description", help}};
  described.update(schema);
  schema = std::move(described);
}

io::Document Record::or_null(io::Document schema) {
  schema["type"] = io::Document::list({*schema.find("type"), "null"});
  return schema;
}

io::Document Record::list_of(io::Document items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

io::Document Record::names_of(io::Document each, std::string_view help_of_each) {
  describe(each, help_of_each);
  return {{"type", "object"}, {"additionalProperties", std::move(each)}};
}

void Record::declare(std::string_view name, io::Document schema, std::string_view help) {
  if (made_.find(name) != nullptr) return;
  describe(schema, help);
  made_[name] = std::move(schema);
  if (always_) required_.push_back(name);
}

io::Document Record::take() {
  if (!is_schema()) return std::move(made_);
  return {{"type", "object"},
          {"properties", std::move(made_)},
          {"required", std::move(required_)},
          {"additionalProperties", false}};
}

}  // namespace hipress::requests
