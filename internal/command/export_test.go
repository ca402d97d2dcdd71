package command

// CrashLoudly is for a test whose process panics.
var CrashLoudly = crashLoudly
