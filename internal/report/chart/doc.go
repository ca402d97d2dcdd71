// Package chart draws small charts as SVG: lines, a heatmap, ratios with their intervals, bars of shares.
//
// What it draws has no colours, fonts or scripts of its own. Elements carry classes for a style sheet: line, dot, area and key (with the
// class of their series), cell (with l1 to l6, from few to many), grid, axis, one (the line at a ratio of 1), tick, label, row, note, and
// hit. A hit is an invisible column or row over the chart with a title: what is to be read there. Browsers show a title after a while; a
// script may do so at once, and move the line of class hair to it.
//
// Every chart is 440 units wide, in which text is 12 high, so that one that is shown about as wide in pixels is easy to read, and 260 high
// where its key has one row. All text from outside is escaped. The same chart always gives the same bytes.
package chart
