package apcore

import (
	"context"
	"maps"
	"slices"
)

// Discoverer finds modules by means of its own, for [Registry.Discover].
type Discoverer interface {
	Discover(ctx context.Context) ([]DiscoveredModule, error)
}

// DiscoveredModule is what a [Discoverer] found.
type DiscoveredModule struct {
	ModuleID string
	Module   Module
}

// SetDiscoverer says whom [Registry.Discover] asks; nil takes it away.
func (r *Registry) SetDiscoverer(discoverer Discoverer) {
	if isNil(discoverer) {
		discoverer = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.discoverer = discoverer
}

// Discover registers the modules that the discoverer finds, each after those it
// depends on, and returns how many. Modules that are registered already count as
// there. A module that cannot be registered is skipped with a warning; ephemeral
// ones always are. A needed module that is missing and a cycle fail as in
// [LoadOrder], before anything is registered. The discoverer's own error is
// returned; without a discoverer nothing is found.
func (r *Registry) Discover(ctx context.Context) (registered int, err error) {
	r.mu.RLock()
	discoverer := r.discoverer
	r.mu.RUnlock()
	if discoverer == nil {
		return 0, nil
	}
	found, err := askDiscoverer(ctx, discoverer)
	if err != nil {
		return 0, err
	}
	modules, order, err := r.arrange(found)
	if err != nil {
		return 0, err
	}
	for _, id := range order {
		module := modules[id]
		if module == nil {
			continue // it was here before
		}
		if err := r.Register(id, module, RegisterOptions{}); err != nil {
			r.skipDiscovered(id, err)
			continue
		}
		registered++
	}
	return registered, nil
}

func askDiscoverer(ctx context.Context, discoverer Discoverer) (found []DiscoveredModule, err error) {
	defer recoverTo(&err, "discoverer")
	return discoverer.Discover(ctx)
}

// arrange sorts what was found, without the bad ones, by what it depends on.
func (r *Registry) arrange(found []DiscoveredModule) (byID map[string]Module, order []string, err error) {
	byID = map[string]Module{}
	candidates := r.candidates()
	for _, module := range found {
		candidate, err := discovered(module)
		if err == nil && byID[module.ModuleID] != nil {
			err = NewError(CodeDuplicateModuleID, "module id %q was discovered twice", module.ModuleID)
		}
		if err != nil {
			r.skipDiscovered(module.ModuleID, err)
			continue
		}
		byID[module.ModuleID] = module.Module
		candidates[module.ModuleID] = candidate
	}
	order, err = LoadOrder(slices.Collect(maps.Values(candidates)))
	return byID, order, err
}

// candidates are the modules that are here already: others may need them.
func (r *Registry) candidates() map[string]Candidate {
	candidates := map[string]Candidate{}
	for _, id := range r.IDs() {
		if entry := r.lookup(id); entry != nil {
			candidates[id] = Candidate{ModuleID: id, Version: entry.descriptor.Version}
		}
	}
	return candidates
}

func discovered(module DiscoveredModule) (Candidate, error) {
	if isEphemeral(module.ModuleID) {
		return Candidate{}, ephemeralRefused(module.ModuleID)
	}
	if err := ValidateModuleID(module.ModuleID); err != nil {
		return Candidate{}, err
	}
	entry, err := newRegistration(module.ModuleID, module.Module, RegisterOptions{})
	if err != nil {
		return Candidate{}, err
	}
	return Candidate{ModuleID: module.ModuleID, Version: entry.descriptor.Version, Dependencies: entry.descriptor.Dependencies}, nil
}

func (r *Registry) skipDiscovered(id string, err error) {
	r.logger.Warn("apcore: a discovered module is skipped", "module_id", id, "error", outside.text(err.Error()))
}
