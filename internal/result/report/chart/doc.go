// Package chart draws small charts as SVG: lines, a heatmap, ratios with their intervals, bars of shares.
//
// Charts have no colours, fonts or scripts of their own. Elements carry classes for a style sheet: line, dot, area and key (with the class of their
// series), cell (with l1 to l6, from few to many), grid, axis, one (the line at a ratio of 1), tick, label, row, note, and hit. A hit is an invisible
// column or row over the chart whose title holds the text to show there. Browsers show a title after a while; a script may do so at once, and move
// the line of class hair there.
//
// Every chart is 440 units wide with text 12 units high, so it is easy to read at about that width in pixels. It is 260 high if its legend has one
// row. All text from outside is escaped. The same chart always gives the same bytes.
package chart
