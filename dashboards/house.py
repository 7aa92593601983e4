"""Gives dashboards the form that Grafana reads, and what all of ours have in common.

UTC, a shared crosshair, no editing in place, a menu of all dashboards, the variables of the data sources.
Classic JSON: file provisioning loads it on every Grafana from 10 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar, assert_never

from grafana_foundation_sdk.builders import (
    common as build_common,
)
from grafana_foundation_sdk.builders import (
    dashboard as build,
)
from grafana_foundation_sdk.builders import (
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards import panels
from dashboards.links import TAG, Uid
from dashboards.panels import Board, Color, Column, Latest, Link, Panel, Query, Series, Step
from dashboards.postgres import POSTGRES, PostgresQuery, PostgresQueryBuilder
from dashboards.variables import PROMETHEUS, data_sources, list_of, rule_pages

MIXED: Final = common.DataSourceRef(uid="-- Mixed --")  # each query names its own
REFRESH: Final = "30s"  # two rounds
ROW_ID: Final = 1000  # above the numbers of panels
BAND_OPACITY: Final = 30  # per cent
# Pixels of columns whose values have about one length, by their sources: the others share what is left.
WIDTHS: Final = {
    **dict.fromkeys(("alerts", "certain_offsets", "is_firing", "leader", "partition"), 80),
    **dict.fromkeys(("attempts", "severity", "state", "transition"), 90),
    **dict.fromkeys(("certain_from", "certain_to", "possible_to"), 105),
    **dict.fromkeys(("cluster", "group_count", "leader_before"), 110),
    **dict.fromkeys(
        ("active_at", "done_at", "ended_at", "fired_at", "last_breach_at", "since"), 140
    ),
    **dict.fromkeys(("at", "created_at", "due_at", "started_at"), 160),
    **dict.fromkeys(("reason", "rule"), 215),
}
UNKNOWN: Final = "unknown"  # without a value: it is not known, and not 0
SINGLE_SERIES: Final = frozenset({Uid.USUAL})  # dashboards of one series at a time
Words = Mapping[str, tuple[str, Color]]
AnyPanel = TypeVar(
    "AnyPanel",
    heatmap.Panel,
    stat.Panel,
    statetimeline.Panel,
    table.Panel,
    timeseries.Panel,
)


def to_dashboard(board: Board) -> dashboard.Dashboard:
    """Return a dashboard as the SDK's model."""
    built = (
        build.Dashboard(board.title)
        .uid(board.uid)
        .description(board.question)
        .tags([TAG])
        .readonly()
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .timezone("utc")
        .time(f"now-{board.hours}h", "now")
        .refresh(REFRESH)
        .variables([*data_sources(), *_lists(board), rule_pages()])
        .annotations([_annotation(annotation) for annotation in board.annotations])
        .link(_menu())
    )
    for number, section in enumerate(board.sections):
        built.with_row(build.Row(section.title).id(ROW_ID + number))
        for panel in section.panels:
            built.with_panel(to_panel(panel))
    return built.build()


def _lists(board: Board) -> Iterator[Builder[dashboard.VariableModel]]:
    for name in board.variables:
        yield list_of(name, is_single=board.uid in SINGLE_SERIES)


def _menu() -> build.DashboardLink:
    return (
        build.DashboardLink("Tidemark")
        .type(dashboard.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(as_dropdown=True)
        .include_vars(include_vars=True)
        .keep_time(keep_time=True)
    )


def _annotation(annotation: panels.Annotation) -> build.AnnotationQuery:
    return (
        build.AnnotationQuery()
        .name(annotation.name)
        .datasource(PROMETHEUS)
        .enable(annotation.is_shown)
        .icon_color(annotation.color)
        .expr(annotation.expression.text)
        .title_format(annotation.name)
        .text_format(annotation.text)
        .step("60s")
    )


def to_panel(panel: Panel) -> Builder[dashboard.Panel]:
    """Return the SDK's builder of a panel.

    Raises:
        TypeError: it is of no kind that is known here.
    """
    match panel:
        case panels.Stat():
            return _stat(panel)
        case panels.Graph():
            return _graph(panel)
        case panels.Table():
            return _table(panel)
        case panels.Heatmap():
            return _heatmap(panel)
        case panels.StateTimeline():
            return _timeline(panel)
        case _:
            raise TypeError(f"panel {panel.title} is of no known kind")


def _common(panel: Panel, built: AnyPanel) -> AnyPanel:
    built.id(panel.number).title(panel.title).description(panel.description)
    built.unit(panel.unit).span(panel.width).height(panel.height)
    built.datasource(_source(panel)).targets(list(_targets(panel)))
    if panel.steps:
        built.thresholds(_thresholds(panel.steps))
    if panel.links:
        built.data_links([_link(link) for link in panel.links])
    return built


def _stat(panel: panels.Stat) -> stat.Panel:
    built = _common(panel, stat.Panel())
    last = build_common.ReduceDataOptions().calcs(["lastNotNull"])
    built.reduce_options(last).no_value(UNKNOWN)
    # Without steps Grafana has its own, which are red from 80 on.
    mode = common.BigValueColorMode
    built.color_mode(mode.BACKGROUND if panel.steps else mode.NONE)
    words = [_mapping(panel.words)] if panel.words else []
    built.mappings([*words, _unknown()])
    return built.graph_mode(common.BigValueGraphMode.NONE)


def _unknown() -> dashboard.SpecialValueMap:
    """Return what is shown without a value; without this it has the color of the first step, which is green."""
    result = dashboard.ValueMappingResult(text=UNKNOWN, color=Color.UNKNOWN)
    options = dashboard.DashboardSpecialValueMapOptions(
        match=dashboard.SpecialValueMatch.NULL_AND_NAN, result=result
    )
    return dashboard.SpecialValueMap(options=options)


def _graph(panel: panels.Graph) -> timeseries.Panel:
    built = _common(panel, timeseries.Panel()).fill_opacity(8).line_width(1)
    built.show_points(common.VisibilityMode.NEVER)
    built.legend(
        build_common.VizLegendOptions()
        .show_legend(show_legend=True)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
    )
    built.tooltip(
        build_common.VizTooltipOptions()
        .mode(common.TooltipDisplayMode.MULTI)
        .sort(common.SortOrder.DESCENDING)
    )
    if panel.is_stacked:
        built.stacking(build_common.StackingConfig().mode(common.StackingMode.NORMAL))
    if panel.steps:
        dashed = common.GraphThresholdsStyleMode.DASHED
        built.thresholds_style(build_common.GraphThresholdsStyleConfig().mode(dashed))
    if panel.band is not None:
        _fill(built, *panel.band)
    return built


def _fill(built: timeseries.Panel, upper: str, lower: str) -> None:
    """Fill what lies between two series, in the color of the background of what is usual."""
    blue = dashboard.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "blue"})
    thin = dashboard.DynamicConfigValue("custom.lineWidth", 0)
    between = dashboard.DynamicConfigValue("custom.fillBelowTo", lower)
    visible = dashboard.DynamicConfigValue("custom.fillOpacity", BAND_OPACITY)
    built.fill_opacity(0)  # of the other lines: the band alone is filled
    built.override_by_name(upper, [blue, thin, between, visible])
    built.override_by_name(lower, [blue, thin])


def _table(panel: panels.Table) -> table.Panel:
    built = _common(panel, table.Panel()).filterable(filterable=True)
    if any(isinstance(query, Latest) for query in panel.queries):
        order = {column.source: place for place, column in enumerate(panel.columns)}
        built.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
        built.with_transformation(
            dashboard.DataTransformerConfig(
                id_val="organize",
                options={"excludeByName": {"Time": True}, "indexByName": order},
            )
        )
    for column in panel.columns:
        built.override_by_name(column.source, list(_properties(column)))
    if panel.sorted_by:
        largest = build_common.TableSortByFieldState().display_name(panel.sorted_by)
        built.sort_by([largest.desc(desc=True)])
    return built


def _properties(column: Column) -> Iterator[dashboard.DynamicConfigValue]:
    yield dashboard.DynamicConfigValue("displayName", column.title)
    if column.source in WIDTHS:
        yield dashboard.DynamicConfigValue("custom.width", WIDTHS[column.source])
    if column.unit:
        yield dashboard.DynamicConfigValue("unit", column.unit)
    if column.words:
        yield dashboard.DynamicConfigValue("mappings", [_mapping(column.words)])
    if column.steps:
        yield dashboard.DynamicConfigValue("thresholds", _thresholds(column.steps).build())
    if column.steps or column.words:
        yield dashboard.DynamicConfigValue("custom.cellOptions", {"type": "color-text"})
    if column.links:
        links = [{"title": link.title, "url": link.url} for link in column.links]
        yield dashboard.DynamicConfigValue("links", links)


def _heatmap(panel: panels.Heatmap) -> heatmap.Panel:
    axis = heatmap.YAxisConfig().unit(panel.unit)
    return _common(panel, heatmap.Panel()).calculate(calculate=False).y_axis(axis)


def _timeline(panel: panels.StateTimeline) -> statetimeline.Panel:
    built = _common(panel, statetimeline.Panel()).mappings([_mapping(panel.words)])
    # Without this Grafana goes from green to red by what is the least and the most in view.
    built.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    return built.merge_values(merge_values=True)


def _mapping(words: Words) -> dashboard.ValueMap:
    return dashboard.ValueMap(
        options={
            value: dashboard.ValueMappingResult(text=word, color=color, index=place)
            for place, (value, (word, color)) in enumerate(words.items())
        }
    )


def _thresholds(steps: tuple[Step, ...]) -> build.ThresholdsConfig:
    first, *rest = steps
    all_steps = [dashboard.Threshold(value=None, color=first.color)]
    all_steps += [dashboard.Threshold(value=step.value, color=step.color) for step in rest]
    return build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(all_steps)


def _link(link: Link) -> build.DashboardLink:
    return build.DashboardLink(link.title).url(link.url)


def _source(panel: Panel) -> common.DataSourceRef:
    is_sql = {isinstance(query, panels.SqlRows | panels.SqlSeries) for query in panel.queries}
    if len(is_sql) > 1:
        return MIXED
    return POSTGRES if is_sql == {True} else PROMETHEUS


def _targets(panel: Panel) -> Iterator[Builder[Dataquery]]:
    for place, query in enumerate(panel.queries):
        yield _target(query, chr(ord("A") + place), panel)


def _target(query: Query, ref_id: str, panel: Panel) -> Builder[Dataquery]:
    match query:
        case panels.SqlRows():
            return PostgresQueryBuilder(PostgresQuery(ref_id, query.sql, "table"))
        case panels.SqlSeries():
            return PostgresQueryBuilder(PostgresQuery(ref_id, query.sql, "time_series"))
        case Series() | Latest():
            return _prometheus(query, ref_id, panel)
        case _:
            assert_never(query)


def _prometheus(query: Series | Latest, ref_id: str, panel: Panel) -> prometheus.Dataquery:
    built = prometheus.Dataquery().datasource(PROMETHEUS).ref_id(ref_id)
    built.expr(query.expression.text)
    if query.legend:
        built.legend_format(query.legend)
    if isinstance(panel, panels.Table):
        built.format(PromQueryFormat.TABLE)
    elif isinstance(panel, panels.Heatmap):
        built.format(PromQueryFormat.HEATMAP).legend_format("{{le}}")
    return built.instant() if isinstance(query, Latest) else built.range()
