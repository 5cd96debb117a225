// Screens that few people open first: a file of their own, loaded when one is asked for.
export { CompareScreen } from "./compare";
export { FleetNodeScreen, FleetScreen } from "./fleet";
export { NodesScreen } from "./nodes";
export { save_picture } from "./picture";
export { RanksScreen } from "./ranks";
export { SystemScreen } from "./system";
export { TensorsScreen } from "./tensors";
export { TimelineScreen } from "./timeline";
