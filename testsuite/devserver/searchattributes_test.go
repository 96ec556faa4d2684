package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
)

func TestAddToKeepsColumns(t *testing.T) {
	wanted := searchAttributes{
		"Old":   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"NewA":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"NewB":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"Count": enumspb.INDEXED_VALUE_TYPE_INT,
	}
	before := map[string]string{"Keyword02": "Old", "Int01": "Gone"}
	got, changed, err := wanted.addTo(before)
	if err != nil || !changed {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	want := map[string]string{"Keyword01": "NewA", "Keyword02": "Old", "Keyword03": "NewB", "Int01": "Gone", "Int02": "Count"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	if len(before) != 2 {
		t.Errorf("the argument changed: %v", before)
	}
	again, changed, err := wanted.addTo(got)
	if err != nil || changed || !cmp.Equal(got, again) {
		t.Errorf("a second time: changed %v, error %v, aliases %v", changed, err, again)
	}
}

func TestAddToRefusesAnotherType(t *testing.T) {
	wanted := searchAttributes{"Color": enumspb.INDEXED_VALUE_TYPE_INT}
	_, _, err := wanted.addTo(map[string]string{"Keyword01": "Color"})
	if err == nil || !strings.Contains(err.Error(), "Color is of type Keyword already, not Int") {
		t.Errorf("error is %v", err)
	}
}
