package child_test

// orphanMaker makes the process a parent that will be killed; see TestChildrenDieWithTheirParent.
func orphanMaker() {}
