#include "tools/cli/aggregate_options.h"

namespace cairn::tools {

CLI::Option* AddColumns(CLI::App* app, const std::string& name, std::vector<std::string>* columns,
                        const std::string& description) {
  return app->add_option(name, *columns, description)->type_name("COLUMN,…")->delimiter(',');
}

void AggregateOptions::AddTo(CLI::App* app) {
  AddColumns(app, "--sum", &sum, "Sums of these columns");
  AddColumns(app, "--avg", &avg, "Their means");
  AddColumns(app, "--min", &min, "Minimums of these columns");
  AddColumns(app, "--max", &max, "Maximums of these columns");
}

std::vector<Aggregate> AggregateOptions::All() const {
  std::vector<Aggregate> all;
  if (count) all.push_back(Aggregate::Count());
  const auto add = [&](AggregateFunction function, const std::vector<std::string>& columns) {
    for (const std::string& column : columns) all.push_back({function, column});
  };
  add(AggregateFunction::kCountDistinct, count_distinct);
  add(AggregateFunction::kSum, sum);
  add(AggregateFunction::kAvg, avg);
  add(AggregateFunction::kMin, min);
  add(AggregateFunction::kMax, max);
  return all;
}

std::string NameOf(const Aggregate& aggregate) {
  const std::string function(AggregateFunctionName(aggregate.function));
  return aggregate.column.empty() ? function : function + "(" + aggregate.column + ")";
}

}  // namespace cairn::tools
