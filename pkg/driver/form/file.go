package form

// File is a file whose content is part of the plan. A plan names it by its path.
type File struct {
	Path string `cty:"path" json:"path"`
	Type string `cty:"type" json:"type"` // such as image/png
	Data string `cty:"data" json:"data"` // in base64
}
