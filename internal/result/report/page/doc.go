// Package page shows runs and experiments as one HTML page with charts, in the words and digits of the other forms of a report.
package page
