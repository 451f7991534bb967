// SPDX-License-Identifier: MIT
// The parts of Apache ECharts that the pages use; importing them individually keeps the file small.
import { BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart } from "echarts/charts";
import {
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  LegendScrollComponent,
  MarkLineComponent,
  MarkPointComponent,
  TitleComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { LabelLayout } from "echarts/features";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

echarts.use([
  BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart, DataZoomInsideComponent,
  DataZoomSliderComponent, GridComponent, LegendScrollComponent, MarkLineComponent, MarkPointComponent,
  TitleComponent, TooltipComponent, VisualMapContinuousComponent, LabelLayout, CanvasRenderer, SVGRenderer,
]);

export { echarts };
export type Option = echarts.EChartsCoreOption;
export type Chart = echarts.ECharts;
