// SPDX-License-Identifier: MIT
// The parts of Apache ECharts that the pages use; importing them one by one keeps the file small.
import { BarChart, CustomChart, HeatmapChart, LineChart } from "echarts/charts";
import {
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  LegendScrollComponent,
  MarkLineComponent,
  TitleComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

echarts.use([
  BarChart, CustomChart, HeatmapChart, LineChart, DataZoomInsideComponent, DataZoomSliderComponent,
  GridComponent, LegendScrollComponent, MarkLineComponent, TitleComponent, TooltipComponent,
  VisualMapContinuousComponent, CanvasRenderer, SVGRenderer,
]);

export { echarts };
export type Option = echarts.EChartsCoreOption;
export type Chart = echarts.ECharts;
