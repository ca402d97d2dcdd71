package push

import (
	"cmp"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of the messages of version 1: WriteRequest, TimeSeries, Label, Sample, Histogram and BucketSpan.
const (
	requestSeries = 1

	seriesLabels, seriesSamples, seriesHistograms = 1, 2, 4

	labelName, labelValue = 1, 2

	sampleValue, sampleTime = 1, 2

	histogramCount, histogramSum, histogramSchema, histogramZeroThreshold, histogramZeroCount = 1, 3, 4, 5, 6
	histogramSpans, histogramDeltas, histogramTime                                            = 11, 12, 15

	spanOffset, spanLength = 1, 2
)

// message is an encoded WriteRequest.
type message []byte

// Size and MarshalToSizedBuffer are the methods that client_golang requires of a message.
func (m message) Size() int { return len(m) }

func (m message) MarshalToSizedBuffer(to []byte) (int, error) { return copy(to, m), nil }

// encode returns messages of at most maxSeries series each, which hold the families as of a time in milliseconds since 1970. Each series gets the label
// job besides its own.
func encode(families []*dto.MetricFamily, job string, at int64) (messages []message) {
	n := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if n%maxSeries == 0 {
				messages = append(messages, nil)
			}
			n++
			last := &messages[len(messages)-1]
			*last = appendMessage(*last, requestSeries, series(family.GetName(), job, m, at))
		}
	}
	return messages
}

// series returns a TimeSeries with one value. Labels are in the order of their names.
func series(name, job string, m *dto.Metric, at int64) (b []byte) {
	labels := [][2]string{{"__name__", name}, {"job", job}}
	for _, l := range m.GetLabel() {
		labels = append(labels, [2]string{l.GetName(), l.GetValue()})
	}
	slices.SortFunc(labels, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	for _, l := range labels {
		b = appendMessage(b, seriesLabels, appendText(appendText(nil, labelName, l[0]), labelValue, l[1]))
	}
	switch {
	case m.GetHistogram() != nil:
		return appendMessage(b, seriesHistograms, histogram(m.GetHistogram(), at))
	case m.GetCounter() != nil:
		return appendMessage(b, seriesSamples, sample(m.GetCounter().GetValue(), at))
	}
	return appendMessage(b, seriesSamples, sample(m.GetGauge().GetValue(), at))
}

func sample(value float64, at int64) []byte {
	return appendVarint(appendDouble(nil, sampleValue, value), sampleTime, uint64(at))
}

// histogram encodes the native buckets, none of which are negative.
func histogram(h *dto.Histogram, at int64) []byte {
	b := appendVarint(nil, histogramCount, h.GetSampleCount())
	b = appendDouble(b, histogramSum, h.GetSampleSum())
	b = appendVarint(b, histogramSchema, protowire.EncodeZigZag(int64(h.GetSchema())))
	b = appendDouble(b, histogramZeroThreshold, h.GetZeroThreshold())
	b = appendVarint(b, histogramZeroCount, h.GetZeroCount())
	for _, s := range h.GetPositiveSpan() {
		b = appendMessage(b, histogramSpans, appendVarint(appendVarint(nil, spanOffset, protowire.EncodeZigZag(int64(s.GetOffset()))), spanLength, uint64(s.GetLength())))
	}
	var deltas []byte
	for _, d := range h.GetPositiveDelta() {
		deltas = protowire.AppendVarint(deltas, protowire.EncodeZigZag(d))
	}
	return appendVarint(appendMessage(b, histogramDeltas, deltas), histogramTime, uint64(at))
}

func appendMessage(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendVarint(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendDouble(b []byte, field protowire.Number, n float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(n))
}
